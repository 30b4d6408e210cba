"""Stages of weir beside functions of Python: what goes from one to the other."""

import pytest

import weir

np = pytest.importorskip("numpy")


def paths_of(clips):
    return sorted(clips.rglob("*.mp4"))


def expected(path, **options):
    return np.asarray(weir.Video(path, **options)[::])


def test_paths_are_decoded(clips):
    for source in (paths_of(clips), [str(path) for path in paths_of(clips)]):
        described = weir.Pipeline().add_source(source).pipe(weir.decode(), concurrency=2, output_order="input").add_sink()
        with described.build(threads=2) as pipeline:
            for path, frames in zip(source, pipeline, strict=True):
                assert frames.name == str(path)
                assert np.array_equal(np.asarray(frames), expected(path))


def test_bytes_are_decoded(clips):
    described = weir.Pipeline().add_source(paths_of(clips)).pipe(lambda path: path.read_bytes()).pipe(weir.decode(4))
    with described.add_sink().build(threads=2) as pipeline:
        assert [np.asarray(frames).shape[0] for frames in pipeline] == [4] * 6
        assert not pipeline.failures


def test_lists_of_paths_are_decoded(clips):
    described = weir.Pipeline().add_source([paths_of(clips)]).disaggregate().pipe(weir.decode(2)).add_sink()
    with described.build(threads=2) as pipeline:
        assert len(list(pipeline)) == 6


def test_functions_get_frames_and_pass_them_on_to_weir(clips):
    seen = []

    def look(frames):
        seen.append((frames, np.asarray(frames).copy()))
        return frames

    described = weir.Pipeline().add_source(paths_of(clips)).pipe(weir.decode(4), output_order="input").pipe(look)
    with described.pipe(weir.collate(3)).add_sink().build(threads=2) as pipeline:
        batches = list(pipeline)
    assert [batch.shape for batch in batches] == [(3, 4, 48, 64, 3)] * 2
    got = np.concatenate([np.asarray(batch.frames) for batch in batches])
    for (frames, before), clip in zip(seen, got, strict=True):
        assert np.array_equal(before, clip)
        assert np.array_equal(np.asarray(frames), before)  # the function may keep them


def test_frames_outlive_the_pipeline(clips):
    path = paths_of(clips)[0]
    with weir.Pipeline().add_source([path]).pipe(weir.decode()).add_sink().build() as pipeline:
        frames = np.asarray(pipeline.get_item())
    assert np.array_equal(frames, expected(path))


def test_batches_of_frames_are_lists(clips):
    described = weir.Pipeline().add_source(paths_of(clips)).pipe(weir.decode(2)).aggregate(3)
    with described.pipe(lambda batch: [np.asarray(frames).shape[0] for frames in batch]).add_sink().build() as pipeline:
        assert list(pipeline) == [[2, 2, 2], [2, 2, 2]]


def test_what_a_stage_cannot_take_is_a_failure(clips):
    described = weir.Pipeline().add_source([5]).pipe(weir.decode()).add_sink()
    with described.build() as pipeline, pytest.raises(weir.Error, match="int"):
        list(pipeline)


def test_a_broken_file_is_a_failure_of_its_item(clips, tmp_path):
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(paths_of(clips)[0].read_bytes()[:300])
    described = weir.Pipeline().add_source([*paths_of(clips), broken]).pipe(weir.decode()).add_sink()
    with described.build(threads=2) as pipeline:
        assert len(list(pipeline)) == 6
        (failure,) = pipeline.failures
    assert failure.file == str(broken)
    assert failure.number == 6
