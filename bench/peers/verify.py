"""Checks that the peers select the same frames as weir and return pictures of the same size.

    verify.py WEIR FILE...      WEIR: the weir program, such as build/release/tools/weir

For each peer and job it prints the number of pictures, and the lowest PSNR relative to weir's pictures (the scalers
differ). It also prints how many pictures are more similar to the previous or next frame of weir. A few of these are
normal where a video hardly moves; a peer that numbers frames differently has hundreds. The exit status is 1 if more
than 5 % are, or if a size or the number of pictures differs.
"""

import os
import subprocess
import sys
import tempfile

import decode
import numpy as np

SIDE = 128


def frames_of_weir(weir, path):
    """Returns all frames of the file, or None if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "frames.npy")
        words = ["--width", str(SIDE), "--height", str(SIDE), "--resize", "stretch", "-o", made]
        ended = subprocess.run([weir, "frames", path, *words], capture_output=True, check=False)
        return np.load(made) if ended.returncode == 0 else None


def psnr(a, b):
    square = ((a.astype(float) - b) ** 2).mean()
    return 99.0 if square == 0 else min(99.0, 10 * np.log10(255**2 / square))


def compare(pictures, frames, numbers):
    """Returns the lowest PSNR, and how many pictures are more similar to a neighbouring frame."""
    lowest, num_nearer = 99.0, 0
    for picture, number in zip(pictures, numbers):
        own = psnr(picture, frames[number])
        around = [i for i in (number - 1, number + 1) if 0 <= i < len(frames)]
        num_nearer += any(psnr(picture, frames[i]) > own for i in around)
        lowest = min(lowest, own)
    return lowest, num_nearer


def verify(peer, job, all_frames):
    num_pictures, lowest, num_nearer, good = 0, 99.0, 0, True
    for path, frames in all_frames.items():
        numbers = decode.wanted(job, len(frames))
        try:
            pictures = np.asarray(decode.PEERS[peer](path, job, SIDE, SIDE))
        except Exception as error:  # each library has exceptions of its own
            print(f"{peer} {job} {path}: {error}")
            good = False
            continue
        if pictures.shape != (len(numbers), SIDE, SIDE, 3):
            print(f"{peer} {job} {path}: {pictures.shape}, not {len(numbers)} pictures")
            good = False
        one_lowest, one_nearer = compare(pictures, frames, numbers)
        num_pictures += len(pictures)
        lowest = min(lowest, one_lowest)
        num_nearer += one_nearer
    print(f"{peer:11} {job:10} {num_pictures:6} pictures, lowest {lowest:.1f} dB, nearer to a neighbour: {num_nearer}")
    return good and num_nearer * 20 <= num_pictures


def main():
    weir, *paths = sys.argv[1:]
    all_frames = {path: frames_of_weir(weir, path) for path in paths}
    all_frames = {path: frames for path, frames in all_frames.items() if frames is not None}
    good = True
    for peer in decode.PEERS:
        try:
            decode.prepare(peer)
        except ImportError:
            print(f"{peer}: not installed")
            continue
        for job in ("all", "first16", "uniform16", "stride4"):
            good = verify(peer, job, all_frames) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
