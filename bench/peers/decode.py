"""One run of one peer: decodes a list of videos to width x height RGB and says what that took.

    decode.py PEER JOB THREADS WIDTH HEIGHT LIST

PEER: spdl, pyav, decord or opencv. JOB: all, first16 or uniform16. LIST: a file with a path a line.
Prints: clips frames failures wall_s cpu_s peak_bytes (start-up and imports are in the last one only).
Each library is used as its documentation tells: one decoder thread a file, as many files at once as THREADS.
"""

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def wanted(job, num_frames):
    """The numbers of the frames that a job asks for."""
    if job == "first16":
        return list(range(min(16, num_frames)))
    if job == "uniform16":
        count = min(16, num_frames)
        return [(2 * i + 1) * num_frames // (2 * count) for i in range(count)]
    return list(range(num_frames))


def decode_pyav(path, job, width, height):
    import av

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        if job == "uniform16" and stream.frames:
            numbers = set(wanted(job, stream.frames))
        elif job == "first16":
            numbers = set(range(16))
        else:
            numbers = None
        arrays = []
        for number, frame in enumerate(container.decode(stream)):
            if numbers is None or number in numbers:
                arrays.append(
                    frame.reformat(width, height, "rgb24", interpolation="BICUBIC").to_ndarray()
                )
            if numbers is not None and number >= max(numbers):
                break
        return len(arrays)


def decode_decord(path, job, width, height):
    import decord

    reader = decord.VideoReader(path, ctx=decord.cpu(0), width=width, height=height, num_threads=1)
    return len(reader.get_batch(wanted(job, len(reader))).asnumpy())


def decode_opencv(path, job, width, height):
    import cv2

    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    if not capture.isOpened():
        raise ValueError(path)
    num_frames = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    numbers = set(wanted(job, num_frames)) if job != "all" else None
    arrays = []
    number = 0
    while capture.grab():
        if numbers is None or number in numbers:
            _, image = capture.retrieve()
            image = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC)
            arrays.append(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
        number += 1
        if numbers is not None and number > max(numbers, default=0):
            break
    if not arrays:
        raise ValueError(path)
    return len(arrays)


def decode_spdl(path, job, width, height):
    import spdl.io

    packets = spdl.io.demux_video(path)
    description = spdl.io.get_video_filter_desc(
        scale_width=width,
        scale_height=height,
        scale_algo="bicubic",
        pix_fmt="rgb24",
        num_frames=16 if job == "first16" else None,
    )
    if job == "uniform16":
        parts = spdl.io.sample_decode_video(
            packets, wanted(job, len(packets)), filter_desc=description
        )
        return len(spdl.io.to_numpy(spdl.io.convert_frames(parts)))
    frames = spdl.io.decode_packets(packets, filter_desc=description)
    return len(spdl.io.to_numpy(spdl.io.convert_frames(frames)))


PEERS = {
    "spdl": decode_spdl,
    "pyav": decode_pyav,
    "decord": decode_decord,
    "opencv": decode_opencv,
}


def prepare(peer):
    """Imports, and what has to be set once for the process."""
    if peer == "spdl":
        import spdl.io  # noqa: F401
        import spdl.pipeline  # noqa: F401
    elif peer == "pyav":
        import av

        av.logging.set_level(av.logging.PANIC)
    elif peer == "decord":
        import decord

        decord.logging.set_level(decord.logging.QUIET)
    elif peer == "opencv":
        import cv2

        cv2.setNumThreads(1)


def run_in_threads(decode, paths, threads):
    def safely(path):
        try:
            return decode(path)
        except Exception:  # a broken file: each library has exceptions of its own
            return -1

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(safely, paths))


def run_in_spdl(decode, paths, threads):
    """SPDL with its own pipeline, and its statistics as they are by default."""
    from spdl.pipeline import PipelineBuilder

    pipeline = (
        PipelineBuilder()
        .add_source(paths)
        .pipe(decode, concurrency=threads)
        .add_sink(3)
        .build(num_threads=threads)
    )
    with pipeline.auto_stop():
        counts = list(pipeline.get_iterator())
    return counts + [-1] * (len(paths) - len(counts))


def main():
    peer, job, threads, width, height, list_path = sys.argv[1:]
    with open(list_path, encoding="utf-8", errors="surrogateescape") as file:
        paths = file.read().splitlines()
    prepare(peer)
    run = run_in_spdl if peer == "spdl" else run_in_threads

    def decode(path):
        return PEERS[peer](path, job, int(width), int(height))

    wall, cpu = time.perf_counter(), time.process_time()
    counts = run(decode, paths, int(threads))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    good = [count for count in counts if count >= 0]
    print(len(good), sum(good), len(counts) - len(good), wall, cpu, peak)


if __name__ == "__main__":
    main()
