"""One run of one peer: decodes a list of videos to width x height RGB, and prints the time and memory it took.

    decode.py PEER JOB THREADS WIDTH HEIGHT LIST

PEER: spdl, pyav, decord, opencv or torchcodec. JOB: all, first16, uniform16 or stride4. LIST: a file with one path per line.
Prints: clips frames failures wall_s cpu_s peak_bytes. Start-up, imports and the first clip, which is decoded once before
the measurement, count only in peak_bytes.
Each file has one decoder thread, and THREADS files are decoded concurrently. Each library is used in the fastest way
that was found for the job; comments explain what is not obvious. The decode_ functions return one array per picture.
"""

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor


def wanted(job, num_frames):
    """Returns the numbers of the frames that a job selects."""
    if job == "first16":
        return list(range(min(16, num_frames)))
    if job == "uniform16":
        count = min(16, num_frames)
        return [(2 * i + 1) * num_frames // (2 * count) for i in range(count)]
    if job == "stride4":  # from the middle; weir repeats the last frame where there are too few
        first = max(num_frames - 61, 0) // 2
        return list(range(first, min(first + 61, num_frames), 4))
    return list(range(num_frames))


def decode_pyav(path, job, width, height):
    import av
    from av.video.reformatter import VideoReformatter

    reformatter = VideoReformatter()  # keeps its scaler from frame to frame, which frame.reformat() does not
    arrays = []

    def scale(frame):
        scaled = reformatter.reformat(
            frame, width, height, "rgb24", interpolation="BICUBIC", threads=1
        )
        arrays.append(scaled.to_ndarray())

    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_type = "NONE"
        stream.codec_context.thread_count = 1
        if job in ("uniform16", "stride4"):
            decode_pyav_groups(container, stream, job, scale)
        else:
            for number, frame in enumerate(container.decode(stream)):
                scale(frame)
                if job == "first16" and number == 15:
                    break
    if not arrays:
        raise ValueError(path)
    return arrays


def decode_pyav_groups(container, stream, job, scale):
    """Decodes single frames by their times: only the groups of pictures with a selected frame, up to that frame."""
    packets = [packet for packet in container.demux(stream) if packet.size]
    times = sorted(packet.pts for packet in packets)
    keys = [i for i, packet in enumerate(packets) if packet.is_keyframe]
    groups = {}
    for number in wanted(job, len(times)):
        key = max((i for i in keys if packets[i].pts <= times[number]), default=0)
        groups.setdefault(key, set()).add(times[number])
    for key, left in groups.items():
        for packet in packets[key:] + [None]:  # None: flushes the decoder
            for frame in stream.codec_context.decode(packet):
                if frame.pts in left:
                    left.discard(frame.pts)
                    scale(frame)
            if not left:
                break
        stream.codec_context.flush_buffers()


def decode_decord(path, job, width, height):
    import decord

    reader = decord.VideoReader(path, ctx=decord.cpu(0), width=width, height=height, num_threads=1)
    return reader.get_batch(wanted(job, len(reader))).asnumpy()


def decode_opencv(path, job, width, height):
    import cv2

    capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
    if not capture.isOpened():
        raise ValueError(path)
    num_frames = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    numbers = set(wanted(job, num_frames)) if job != "all" else None
    arrays = []
    number = 0
    while capture.grab():  # seeking to each frame takes seven times as long for clips of 10 s
        if numbers is None or number in numbers:
            _, image = capture.retrieve()
            image = cv2.resize(image, (width, height), interpolation=cv2.INTER_CUBIC)
            arrays.append(cv2.cvtColor(image, cv2.COLOR_BGR2RGB))
        number += 1
        if numbers is not None and number > max(numbers, default=0):
            break
    if not arrays:
        raise ValueError(path)
    return arrays


def decode_spdl(path, job, width, height):
    import spdl.io

    packets = spdl.io.demux_video(path)
    description = spdl.io.get_video_filter_desc(
        scale_width=width,
        scale_height=height,
        scale_algo="bicubic",
        scale_mode=None,  # the default keeps the aspect and pads
        pix_fmt="rgb24",
    )
    if job == "all":
        frames = spdl.io.decode_packets(packets, filter_desc=description)
    else:
        frames = spdl.io.sample_decode_video(
            packets, wanted(job, len(packets)), filter_desc=description
        )
    return spdl.io.to_numpy(spdl.io.convert_frames(frames))


def decode_torchcodec(path, job, width, height):
    from torchcodec.decoders import VideoDecoder
    from torchcodec.transforms import Resize

    decoder = VideoDecoder(
        path,
        dimension_order="NHWC",
        num_ffmpeg_threads=1,
        seek_mode="approximate" if job == "first16" else "exact",  # the same frames, faster
        transforms=[Resize((height, width))],
    )
    if job == "all":
        return decoder[:].numpy()
    return decoder.get_frames_at(wanted(job, len(decoder))).data.numpy()


PEERS = {
    "spdl": decode_spdl,
    "pyav": decode_pyav,
    "decord": decode_decord,
    "opencv": decode_opencv,
    "torchcodec": decode_torchcodec,
}


def prepare(peer):
    """Imports the library, and applies settings that hold for the whole process."""
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
    elif peer == "torchcodec":
        import torch
        import torchcodec.decoders  # noqa: F401
        import torchcodec.transforms  # noqa: F401

        torch.set_num_threads(1)


def run_in_threads(decode, paths, threads):
    def safely(path):
        try:
            return decode(path)
        except Exception:  # a broken file: each library raises different exceptions
            return -1

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(safely, paths))


def run_in_spdl(decode, paths, threads):
    """Runs SPDL with its own pipeline and its default statistics."""
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
        return len(PEERS[peer](path, job, int(width), int(height)))

    run(decode, paths[:1], 1)  # loads what a library loads on first use
    wall, cpu = time.perf_counter(), time.process_time()
    counts = run(decode, paths, int(threads))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    good = [count for count in counts if count >= 0]
    print(len(good), sum(good), len(counts) - len(good), wall, cpu, peak)


if __name__ == "__main__":
    main()
