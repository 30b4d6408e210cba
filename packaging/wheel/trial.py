"""Tries an installed wheel: it has all that it needs, decodes, loads, records, and lives beside other copies of FFmpeg.

Each part runs in a process of its own. Prints a line per part; exit status 1 if one failed.
"""

import http.server
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time

# What is decoded: the encoder of the ffmpeg program, options, and the file.
CLIPS = {
    "h264": ("libx264", (), "mp4"),
    "hevc": ("libx265", ("-x265-params", "log-level=error"), "mp4"),
    "vp9": ("libvpx-vp9", (), "webm"),
    "av1": ("libaom-av1", ("-cpu-used", "8"), "mkv"),
    "mpeg4": ("mpeg4", (), "avi"),
    "mjpeg": ("mjpeg", ("-pix_fmt", "yuvj420p"), "mov"),
    "prores": ("prores_ks", (), "mov"),
}
NUM_FRAMES = 12


def make_clips(folder):
    source = f"testsrc2=size=64x48:rate=12:duration={NUM_FRAMES // 12}"
    for name, (encoder, options, kind) in CLIPS.items():
        command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-c:v", encoder, *options, f"{folder}/{name}.{kind}"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def expect(is_true, text):
    if not is_true:
        raise AssertionError(text)


def mapped_files():
    with open("/proc/self/maps") as file:
        return {line.split(maxsplit=5)[5].strip() for line in file if ".so" in line}


# ---- the parts


def importing(folder):
    """Loads no FFmpeg and starts no thread."""
    started, cpu = time.perf_counter(), time.process_time()
    import weir

    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    expect(not any("weir-stages" in name or "gnutls" in name for name in mapped_files()), "import weir loads FFmpeg")
    expect(len(os.listdir("/proc/self/task")) == 1, "import weir starts a thread")
    return f"weir {weir.__version__}: {wall * 1e3:.1f} ms, CPU {cpu * 1e3:.1f} ms"


def decoding(folder):
    """Decodes each codec, and the frames differ."""
    import weir

    names = sorted(os.listdir(folder))
    for name in names:
        video = weir.Video(f"{folder}/{name}", filter="hflip,yadif=deint=interlaced")
        expect(len(video) == NUM_FRAMES, f"{name}: {len(video)} frames")
        frames = [bytes(memoryview(frame)) for frame in video[[0, NUM_FRAMES - 1]]]
        expect(frames[0] != frames[1], f"{name}: its frames are all the same")
        expect(name.startswith(video.codec), f"{name}: the codec is {video.codec}")
    return " ".join(names)


def loading(folder):
    """A loader, its recording, and the figures of that; all libraries are the wheel's own."""
    import weir

    with tempfile.TemporaryDirectory() as work:
        loader = weir.Loader(folder, frames=4, size=32, batch_size=2, record=f"{work}/run.db", trace=f"{work}/run.json.gz")
        num = sum(len(batch.labels) for batch in loader)
        expect(num == len(CLIPS), f"{num} clips, not {len(CLIPS)}")
        loader.close()
        expect("decode" in weir.summary(f"{work}/run.db"), "the summary names no stage")
        expect(os.path.getsize(f"{work}/run.json.gz") > 0, "the trace is empty")
    package = os.path.dirname(weir.__file__)
    own = (package, package.removesuffix("weir") + "pyweir.libs")
    known = ("libav", "libsw", "libdav1d", "libsqlite3", "libuv", "libarchive", "libgnutls", "libnettle")
    others = [name for name in mapped_files() if os.path.basename(name).startswith(known) and not name.startswith(own)]
    # NumPy and Python have libraries of their own, but this process imports neither NumPy nor sqlite3
    expect(not others, f"libraries of the system are loaded: {others}")
    return " ".join(sorted(os.path.basename(name) for name in mapped_files() if name.startswith(own)))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def make_certificate(work):
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
               "subjectAltName=DNS:localhost", "-keyout", f"{work}/key.pem", "-out", f"{work}/certificate.pem"]
    subprocess.run(command, check=True, capture_output=True)


def serve(folder, work):
    """An https server of these files. Returns its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{work}/certificate.pem", f"{work}/key.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=folder))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def https(folder):
    """Checks certificates: of a file that is named, and of the system or certifi."""
    import weir

    with tempfile.TemporaryDirectory() as work:
        make_certificate(work)
        url = f"https://localhost:{serve(folder, work)}/h264.mp4"
        expect(len(weir.Video(url, ca_file=f"{work}/certificate.pem")) == NUM_FRAMES, "frames are missing")
        try:
            weir.Video(url)
        except weir.Error as error:
            expect("is not trusted" in str(error), str(error))
        else:
            raise AssertionError("a certificate that nobody trusts was taken")
    return "trusted by ca_file, refused without"


def certificates(folder):
    """Without certificates of the system, those of certifi are used: here, a package of that name."""
    hidden = "for folder in /etc/ssl /etc/pki; do [ ! -d $folder ] || mount -t tmpfs none $folder || exit; done; exec \"$@\""
    with tempfile.TemporaryDirectory() as work:
        make_certificate(work)
        with open(f"{work}/certifi.py", "w") as file:
            file.write(f"def where():\n    return {work + '/certificate.pem'!r}\n")
        inside = [sys.executable, __file__, folder, "without_certificates", work]
        subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", hidden, "sh", *inside], check=True)


def without_certificates(folder, work):
    port = serve(folder, work)
    sys.path.insert(0, work)
    import weir

    expect(len(weir.Video(f"https://localhost:{port}/h264.mp4")) == NUM_FRAMES, "frames are missing")
    return "those of certifi are used"


def beside(folder, *first):
    """Beside PyAV and OpenCV, whichever is loaded first, with their symbols visible to all."""
    import importlib

    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    for name in first:
        importlib.import_module(name)
    import av
    import cv2

    import weir

    for name in sorted(os.listdir(folder)):
        path = f"{folder}/{name}"
        expect(len([frame for frame in weir.Video(path)]) == NUM_FRAMES, f"weir: {name}")
        with av.open(path) as container:
            expect(sum(1 for _ in container.decode(video=0)) == NUM_FRAMES, f"PyAV: {name}")
        capture = cv2.VideoCapture(path)
        expect(capture.read()[0], f"OpenCV: {name}")
    return f"PyAV {av.__version__}, OpenCV {cv2.__version__}"


def beside_weir_first(folder):
    """weir's libraries are loaded before the others."""
    return beside(folder, "weir._media")


def beside_weir_last(folder):
    """weir's libraries are loaded after the others."""
    return beside(folder, "av", "cv2", "weir._media")


PARTS = (importing, decoding, loading, https, certificates)
PEERS = (beside_weir_first, beside_weir_last)


def has_peers():
    import importlib.util

    return all(importlib.util.find_spec(name) for name in ("av", "cv2"))


def main():
    if len(sys.argv) > 2:
        part = globals()[sys.argv[2]]
        result = part(sys.argv[1], *sys.argv[3:])
        if result:
            print(f"{part.__name__}: {result}", flush=True)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        make_clips(folder)
        parts = PARTS + (PEERS if has_peers() else ())
        failed = [part.__name__ for part in parts if subprocess.run([sys.executable, __file__, folder, part.__name__]).returncode]
    for name in failed:
        print(f"trial: {name} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
