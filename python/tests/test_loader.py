"""weir.Loader: batches, epochs, ranks, exact resume, failures, ends."""

import copy
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import weir


@pytest.fixture(scope="session")
def rows(clips):
    """24 clips: windows of six files."""
    return [{"path": str(path), "label": path.parent.name, "start": part * 0.5, "end": part * 0.5 + 0.5, "part": part,
             "score": part / 4, "note": f"{path.stem}.{part}"}
            for path in sorted(clips.glob("*/*.mp4")) for part in range(4)]


@pytest.fixture(scope="session")
def index(rows):
    return weir.Index.build(rows)


def small(source, **options):
    """A loader of small batches."""
    return weir.Loader(source, **{"frames": 2, "size": 16, "batch_size": 4, **options})


def ids_of(batches):
    return [number for batch in batches for number in batch.ids.tolist()]


def pixels_of(batches):
    return [bytes(memoryview(batch)) for batch in batches]


@pytest.fixture
def broken_folder(clips, tmp_path):
    """Three good files, half a file and a text that is called .mp4."""
    for i in range(3):
        (tmp_path / f"{i}.mp4").write_bytes((clips / "walk" / f"{i}.mp4").read_bytes())
    data = (clips / "jump" / "0.mp4").read_bytes()
    (tmp_path / "half.mp4").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.mp4").write_text("this is no video")
    return tmp_path


@pytest.fixture
def failing_index(clips, tmp_path):
    """An index of six files, two of which have become unusable since."""
    for path in clips.glob("*/*.mp4"):
        (tmp_path / f"{path.parent.name}{path.name}").write_bytes(path.read_bytes())
    index = weir.Index.build(tmp_path)
    (tmp_path / "walk1.mp4").unlink()
    (tmp_path / "jump2.mp4").write_bytes(b"another file now")
    return index


# ---- batches


def test_a_folder_gives_batches_of_clips_with_all_that_is_known_of_them(clips):
    with small(clips, frames=4, shuffle=False) as loader:
        batches = list(loader)
    assert [batch.frames.shape for batch in batches] == [(4, 4, 16, 16, 3), (2, 4, 16, 16, 3)]
    assert batches[0].labels.tolist() == [0, 0, 0, 1]
    assert ids_of(batches) == list(range(6))
    assert batches[0].mask.shape == (4, 4)
    assert batches[0].valid.tolist() == [1, 1, 1, 1]
    assert batches[0].names[0].endswith("jump/0.mp4")
    assert loader.index.classes == ["jump", "walk"]


def test_a_list_of_paths_is_a_source(clips):
    paths = sorted(clips.glob("*/*.mp4"))
    with small(paths, shuffle=False, labels=[3, 1, 2, 0, 4, 5]) as loader:
        batches = list(loader)
    assert [label for batch in batches for label in batch.labels.tolist()] == [3, 1, 2, 0, 4, 5]
    assert [os.path.samefile(name, path) for name, path in zip(batches[0].names, paths)] == [True] * 4


def test_columns_are_in_the_batch_and_conditions_choose_clips(index):
    with small(index, where="part >= 2", shuffle=False) as loader:
        assert len(loader.index) == 12
        for batch in loader:
            assert all(part >= 2 for part in batch.columns["part"].tolist())
            assert [part / 4 for part in batch.columns["part"].tolist()] == batch.columns["score"].tolist()
            assert [int(note[-1]) for note in batch.columns["note"]] == batch.columns["part"].tolist()


def test_an_index_file_is_a_source(clips, tmp_path):
    weir.Index.build(clips, tmp_path / "clips.weir")
    with small(str(tmp_path / "clips.weir")) as loader:
        assert len(loader.index) == 6
        assert sorted(ids_of(loader)) == list(range(6))


# ---- orders


def test_batches_of_buckets_have_clips_of_similar_sizes(rows):
    long = [{**row, "end": row["start"] + 0.1 * (1 + row["part"])} for row in rows]
    index = weir.Index.build(long)
    spread = {}
    for name, options in (("buckets", {"buckets": 4}), ("by part", {"buckets": 4, "bucket_by": "1.0 + part"}), ("shuffled", {})):
        with small(index, **options) as loader:
            epochs = [list(loader) for _ in range(4)]
        assert all(sorted(ids_of(batches)) == list(range(24)) for batches in epochs)
        parts = [batch.columns["part"].tolist() for batches in epochs for batch in batches]
        spread[name] = sum(max(of_batch) - min(of_batch) for of_batch in parts)
    assert spread["buckets"] < 0.7 * spread["shuffled"]
    assert spread["by part"] < 0.7 * spread["shuffled"]


def test_clips_of_one_file_follow_each_other_within_a_block(index):
    with small(index, group_files=24, keep_open=2) as loader:
        for _ in range(2):
            numbers = ids_of(loader)
            assert sorted(numbers) == list(range(24))
            files = [number // 4 for number in numbers]
            assert sum(a != b for a, b in zip(files, files[1:])) == 5


@pytest.mark.parametrize("options", [{"buckets": 3}, {"group_files": 8}])
def test_orders_of_buckets_and_files_resume_exactly_and_are_shared_among_ranks(index, options):
    ranks = [small(index, rank=rank, world=2, share="exact", **options) for rank in range(2)]
    numbers = [ids_of(loader) for loader in ranks]
    assert sorted(numbers[0] + numbers[1]) == list(range(24))
    for loader in ranks:
        loader.close()
    with small(index, **options) as loader:
        whole = ids_of(loader)
    with small(index, **options) as loader:
        batches = iter(loader)
        begun = ids_of([next(batches), next(batches)])
        assert loader.batches_left == 4
        state = loader.state_dict()
    with small(index, **options) as loader:
        loader.load_state_dict(state)
        assert loader.batches_left == 4
        assert begun + ids_of(loader) == whole


@pytest.mark.parametrize("options, message", [
    ({"bucket_by": "width"}, "bucket_by needs buckets="),
    ({"buckets": 2, "group_files": 2}, "two orders"),
    ({"buckets": 2, "shuffle": False}, "buckets is for shuffle=True"),
    ({"group_files": 2, "shuffle": False}, "group_files is for shuffle=True"),
    ({"buckets": 0}, "buckets"),
    ({"buckets": 2, "bucket_by": "no such column"}, "no such column|syntax"),
])
def test_orders_that_do_not_fit_are_refused(index, options, message):
    with pytest.raises((ValueError, weir.Error), match=message):
        small(index, **options)


def test_several_clips_have_an_axis(index):
    with small(index, clips=3, frames=2, stride=1, layout="CTHW") as loader:
        assert next(iter(loader)).frames.shape == (4, 3, 3, 2, 16, 16)


@pytest.mark.parametrize("options, shape", [
    ({"size": 20}, (4, 2, 20, 20, 3)),
    ({"size": 20, "crop": None}, (4, 2, 20, 27, 3)),
    ({"size": 24, "crop": "random", "crop_size": (10, 12)}, (4, 2, 10, 12, 3)),
    ({"size": (20, 30)}, (4, 2, 20, 30, 3)),
    ({"size": None, "crop": "resized", "crop_size": 18}, (4, 2, 18, 18, 3)),
    ({"size": None}, (4, 2, 48, 64, 3)),
    ({"size": 20, "layout": "TCHW"}, (4, 2, 3, 20, 20)),
    ({"size": 20, "layout": "CTHW"}, (4, 3, 2, 20, 20)),
    ({"size": 20, "start": "spread", "frames": 3}, (4, 3, 20, 20, 3)),
    ({"size": 20, "stride": 0.2, "start": "center"}, (4, 2, 20, 20, 3)),
    ({"size": 20, "start": "first", "stride": 2}, (4, 2, 20, 20, 3)),
])
def test_sizes_crops_and_layouts_give_their_shapes(index, options, shape):
    with small(index, **options) as loader:
        assert next(iter(loader)).shape == shape


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("layout", ["THWC", "TCHW", "CTHW"])
def test_numpy_shares_the_memory_of_a_batch(index, dtype, layout):
    numpy = pytest.importorskip("numpy")
    with small(index, dtype=dtype, layout=layout) as loader:
        batch = next(iter(loader))
    first, second = numpy.from_dlpack(batch.frames), numpy.asarray(batch.frames)
    assert first.dtype == second.dtype == dtype
    assert first.shape == second.shape == batch.frames.shape
    assert first.ctypes.data == second.ctypes.data
    first.flat[0] = 1
    assert second.flat[0] == 1
    assert batch.labels.tolist() == numpy.from_dlpack(batch.labels).tolist()


def test_floats_are_scaled_with_mean_and_deviation(index):
    numpy = pytest.importorskip("numpy")
    with small(index, shuffle=False, start="first") as plain, \
            small(index, shuffle=False, start="first", dtype="float32", mean=(0.4, 0.5, 0.6), std=0.5) as scaled:
        values, floats = (numpy.asarray(next(iter(loader)).frames) for loader in (plain, scaled))
    expected = (values / 255 - numpy.array([0.4, 0.5, 0.6])) / 0.5
    assert numpy.allclose(floats, expected, atol=1e-5)


def test_bfloat16_comes_as_dlpack_only(index):
    with small(index, dtype="bfloat16") as loader:
        batch = next(iter(loader))
    assert batch.frames.dtype == "bfloat16"
    with pytest.raises(BufferError):
        memoryview(batch.frames)


def test_flips_mirror_clips(index):
    numpy = pytest.importorskip("numpy")
    with small(index, shuffle=False, start="first", flip=1.0) as flipped, \
            small(index, shuffle=False, start="first") as plain:
        first, second = (numpy.asarray(next(iter(loader)).frames) for loader in (flipped, plain))
    assert numpy.array_equal(first, second[:, :, :, ::-1])


def test_views_outlive_the_batch_the_loader_and_collections(index):
    numpy = pytest.importorskip("numpy")
    loader = small(index, shuffle=False)
    batch = next(iter(loader))
    views = [numpy.asarray(batch.frames), numpy.from_dlpack(batch.frames), numpy.asarray(batch.labels)]
    copies = [view.copy() for view in views]
    loader.close()
    del batch, loader
    gc.collect()
    with small(index) as other:
        list(other)
    assert all(numpy.array_equal(view, copy) for view, copy in zip(views, copies))


# ---- epochs and length


@pytest.mark.parametrize("batch_size, drop_last, length", [(4, False, 6), (5, False, 5), (5, True, 4), (24, True, 1), (100, False, 1)])
def test_the_length_is_the_number_of_batches(index, batch_size, drop_last, length):
    with small(index, batch_size=batch_size, drop_last=drop_last) as loader:
        assert len(loader) == length
        assert len(list(loader)) == length
        assert len(list(loader)) == length


def test_each_epoch_has_all_clips_in_another_order(index):
    with small(index) as loader:
        first, second = ids_of(loader), ids_of(loader)
    with small(index, seed=1) as loader:
        other = ids_of(loader)
    assert sorted(first) == sorted(second) == sorted(other) == list(range(24))
    assert first != second != list(range(24))
    assert other not in (first, second, list(range(24)))


def test_the_same_seed_gives_the_same_bytes_with_any_number_of_threads(index):
    options = {"crop": "random", "flip": True, "size": 24, "crop_size": 16}
    with small(index, seed=5, concurrency=1, threads=1, **options) as one, \
            small(index, seed=5, concurrency=4, threads=3, **options) as other, small(index, seed=6, **options) as third:
        first = pixels_of(one)
        assert first == pixels_of(other)
        assert first != pixels_of(third)


def test_an_epoch_can_be_chosen_and_is_the_same_as_when_it_is_reached(index):
    with small(index) as loader:
        epochs = [pixels_of(loader) for _ in range(3)]
        assert loader.epoch == 3
        loader.set_epoch(1)
        assert loader.epoch == 1
        assert pixels_of(loader) == epochs[1]
        assert pixels_of(loader) == epochs[2]


def test_a_loop_that_is_left_ends_its_epoch(index):
    with small(index) as whole, small(index) as left:
        epochs = [ids_of(whole) for _ in range(2)]
        for batch in left:
            break
        assert ids_of(left) == epochs[1]


def test_an_older_loop_gets_no_batches_after_a_newer_one_has_begun(index):
    with small(index) as loader:
        first = iter(loader)
        next(first)
        second = iter(loader)
        with pytest.raises(RuntimeError):
            next(first)
        assert len(list(second)) == 6
        assert list(second) == []


# ---- ranks


@pytest.mark.parametrize("drop_last", [False, True])
def test_ranks_have_equal_lengths_and_together_all_clips(index, drop_last):
    loaders = [small(index, rank=rank, world=3, batch_size=5, drop_last=drop_last) for rank in range(3)]
    shares = []
    for loader in loaders:
        with loader:
            batches = list(loader)
            assert len(batches) == len(loader) == len(loaders[0])
            shares.append(ids_of(batches))
    if not drop_last:
        assert sorted(sum(shares, [])) == list(range(24))
    assert len(set(map(len, shares))) == 1


def test_ranks_come_from_the_launcher(index, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with small(index) as loader:
        assert (loader.rank, loader.world) == (2, 4)
        assert len(loader) == 2


def test_half_a_launcher_is_an_error(index, monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(ValueError, match="WORLD_SIZE"):
        small(index)


def test_ranks_of_torch_come_before_those_of_the_launcher(index, monkeypatch):
    class Distributed:
        is_available = is_initialized = staticmethod(lambda: True)
        get_rank = staticmethod(lambda: 1)
        get_world_size = staticmethod(lambda: 2)

    monkeypatch.setitem(sys.modules, "torch.distributed", Distributed)
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "4")
    with small(index) as loader:
        assert (loader.rank, loader.world) == (1, 2)


# ---- state


@pytest.mark.parametrize("num_batches", [0, 1, 3, 6, 8, 12])
def test_a_resume_delivers_exactly_the_rest(index, num_batches):
    with small(index, flip=True) as whole:
        expected = [(batch.ids.tolist(), bytes(memoryview(batch))) for _ in range(3) for batch in whole]
    with small(index, flip=True) as first:
        taken, state = take(first, num_batches)
    with small(index, flip=True) as second:
        second.load_state_dict(json.loads(json.dumps(pickle.loads(pickle.dumps(state)))))
        while second.epoch < 3:
            taken += [(batch.ids.tolist(), bytes(memoryview(batch))) for batch in second]
    assert taken == expected


def take(loader, num_batches):
    """So many batches, over several epochs; and the state after the last of them."""
    taken = []
    while len(taken) < num_batches:
        for batch in loader:
            taken.append((batch.ids.tolist(), bytes(memoryview(batch))))
            if len(taken) == num_batches and num_batches % len(loader):
                return taken, loader.state_dict()
    return taken, loader.state_dict()


def test_a_state_of_a_state_that_was_not_used_is_the_same(index):
    with small(index) as first:
        next(iter(first))
        state = first.state_dict()
    with small(index) as second:
        second.load_state_dict(state)
        assert second.state_dict() == state
        second.set_epoch(0)  # as training scripts do before each epoch
        assert len(ids_of(second)) == 20


def test_the_batches_that_are_left_are_known(index):
    with small(index, batch_size=5) as loader:
        assert loader.batches_left == 5
        batches = iter(loader)
        next(batches)
        next(batches)
        assert loader.batches_left == 3
        state = loader.state_dict()
    with small(index, batch_size=5) as other:
        other.load_state_dict(state)
        assert other.batches_left == 3
        assert len(list(other)) == 3
        assert len(other) == other.batches_left == 5


@pytest.mark.parametrize("num_ranks", [1, 2, 4])
def test_another_number_of_ranks_goes_on_with_each_clip_once(index, num_ranks):
    taken, states = [], []
    for rank in range(3):
        with small(index, rank=rank, world=3, batch_size=2, share="exact") as loader:
            batches = iter(loader)
            taken += ids_of(next(batches) for _ in range(1 + rank % 2))
            states.append(loader.state_dict())
    for rank in range(num_ranks):
        with small(index, rank=rank, world=num_ranks, batch_size=2, share="exact") as loader:
            loader.load_state_dict(states)
            left = loader.batches_left
            batches = list(loader)
            assert len(batches) == left
            taken += ids_of(batches)
            assert len(loader) * 2 >= 24 // num_ranks
    assert sorted(taken) == list(range(24))


def test_states_that_do_not_fit_are_refused(index, clips):
    with small(index, seed=1) as loader:
        next(iter(loader))
        state = loader.state_dict()
        with pytest.raises(ValueError, match="no state"):
            loader.load_state_dict({"epoch": 1})
        with pytest.raises(ValueError, match="no state"):
            loader.load_state_dict([])
        with pytest.raises(ValueError, match="2 ranks"):
            loader.load_state_dict({**state, "world": 2})
        with pytest.raises(weir.Error, match="checkpoint"):
            loader.load_state_dict({**state, "checkpoint": "torn"})
    with small(index, seed=2) as other, pytest.raises(ValueError, match="seed"):
        other.load_state_dict(state)
        assert len(list(loader)) == 6  # it is as it was
    with small(clips, seed=1) as other, pytest.raises(ValueError, match="items=24"):
        other.load_state_dict(state)


def test_a_state_may_be_asked_for_by_another_thread(index):
    with small(index) as loader:
        states = []
        for batch in loader:
            thread = threading.Thread(target=lambda: states.append(loader.state_dict()))
            thread.start()
            thread.join()
        assert len({state["checkpoint"] for state in states}) == 6


# ---- failures


def test_broken_files_of_a_folder_are_left_out_and_listed(broken_folder):
    with small(broken_folder) as loader:
        assert len(ids_of(loader)) == 3
        assert [clip.path for clip in loader.index.broken] == ["half.mp4", "text.mp4"]
        assert loader.failures == []


def test_clips_that_fail_are_replaced_and_marked(failing_index):
    with small(failing_index, batch_size=3) as loader:
        for _ in range(2):
            batches = list(loader)
            assert len(batches) == len(loader) == 2
            assert sum(batch.valid.tolist().count(0) for batch in batches) == 2
    for epoch in range(2):
        failures = {os.path.basename(failure.file) for failure in loader.failures if failure.epoch == epoch}
        assert failures == {"walk1.mp4", "jump2.mp4"}


def test_clips_that_fail_may_be_skipped(failing_index):
    with small(failing_index, batch_size=3, on_error="skip") as loader:
        assert len(loader) == 2
        batches = list(loader)
        assert len(ids_of(batches)) == 4
        assert all(all(batch.valid.tolist()) for batch in batches)
        assert len([failure for failure in loader.failures if failure.epoch == 0]) == 2


def test_clips_that_fail_may_end_the_epoch(failing_index):
    with small(failing_index, on_error="raise") as loader:
        with pytest.raises(weir.Error) as caught:
            list(loader)
        assert os.path.basename(caught.value.file) in ("walk1.mp4", "jump2.mp4")


@pytest.mark.parametrize("options, message", [
    ({"on_error": "ignore"}, "on_error"),
    ({"layout": "BTHWC"}, "layout"),
    ({"dtype": "float64"}, "dtype"),
    ({"dtype": "uint8", "mean": 0.5}, "mean"),
    ({"dtype": "float32", "mean": (1, 2)}, "mean"),
    ({"crop": "left"}, "crop"),
    ({"crop": None, "crop_size": 5}, "crop_size"),
    ({"size": None, "crop": "random"}, "size"),
    ({"flip": 2}, "flip"),
    ({"frames": 0}, "frames"),
    ({"stride": 0}, "stride"),
    ({"stride": -0.5}, "stride"),
    ({"start": "middle"}, "clip_start"),
    ({"start": "spread", "stride": 2}, "spread"),
    ({"short": "pad"}, "clip_short"),
    ({"clips": 0}, "clips"),
    ({"batch_size": 0}, "batch_size"),
    ({"seed": -1}, "seed"),
    ({"rank": 1}, "world"),
    ({"rank": 2, "world": 2}, "rank"),
    ({"share": "some"}, "share"),
    ({"concurrency": 0}, "concurrency"),
    ({"prefetch": 0}, "prefetch"),
    ({"where": "nothing = 1"}, "nothing"),
    ({"labels": [1]}, "labels"),
    ({"colour": 1}, "colour"),
])
def test_options_that_do_not_fit_are_named(index, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        small(index, **options)


# ---- what it tells


def test_it_explains_itself_during_and_after_a_run(index):
    with small(index) as loader:
        list(loader)
        while not any("decode" in name for name in loader.stats()["tasks"]):  # until a second has passed
            list(loader)
        assert "Limit" in loader.explain()
    assert "Limit" in loader.explain()
    tasks = loader.stats()["tasks"]
    assert sum(values["num_tasks"] for name, values in tasks.items() if "decode" in name) >= 24


def test_a_loader_that_has_not_begun_has_nothing_to_tell(index):
    with small(index) as loader, pytest.raises(ValueError, match="begin a loop"):
        loader.explain()


def test_a_notebook_shows_the_explanation_escaped(index):
    with small(index) as loader:
        assert "weir.Loader" in loader._repr_html_()
        list(loader)
    html = loader._repr_html_()
    assert "<pre>" in html and "<svg" in html
    assert "decode" in html


def test_a_loop_over_a_loader_that_was_closed_says_so(index):
    loader = small(index)
    batches = iter(loader)
    next(batches)
    loader.close()
    with pytest.raises(ValueError, match="the loader is closed"):
        next(batches)


def test_runs_are_recorded_and_traced(index, tmp_path):
    import sqlite3

    with small(index, record=tmp_path / "run.db", trace=tmp_path / "run.json.gz") as loader:
        list(loader)
        list(loader)
    with sqlite3.connect(tmp_path / "run.db") as database:
        tasks = dict(database.execute("SELECT name, sum(num_tasks) FROM task_stats GROUP BY name").fetchall())
        steps = database.execute("SELECT min(first_step), max(last_step) FROM queue_laps").fetchone()
    assert steps == (0, 11)  # each batch begins a step
    assert any("decode" in name and number >= 48 for name, number in tasks.items())
    assert (tmp_path / "run.json.gz").stat().st_size > 0


def test_each_rank_and_each_pipeline_has_files_of_its_own(index, tmp_path):
    for rank in range(2):
        with small(index, record=tmp_path / "run.db", trace=tmp_path / "run.json.gz", rank=rank, world=2) as loader:
            for batch in loader:
                break
            list(loader)
    assert {path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))} == {
        name for rank in range(2) for name in (f"run.rank{rank}.db", f"run.rank{rank}.json.gz", f"run.rank{rank}.2.json.gz")}


def test_an_epoch_without_a_whole_batch_is_empty(clips):
    with small(clips, batch_size=7, drop_last=True) as loader:
        assert len(loader) == 0
        assert list(loader) == []
        assert list(loader) == []
        assert loader.epoch == 2


# ---- ends


def test_a_loader_that_is_closed_says_so(index):
    loader = small(index)
    batches = iter(loader)
    next(batches)
    loader.close()
    loader.close()
    with pytest.raises(ValueError, match="closed"):
        iter(loader)
    with pytest.raises(ValueError, match="closed"):
        next(batches)
    assert loader.state_dict()["epoch"] == 0


def test_a_loader_that_is_closed_while_another_thread_waits_ends_its_loop(index):
    loader = small(index)
    begun, ended = threading.Event(), []

    def work():
        try:
            while True:
                for _ in loader:
                    begun.set()
        except (weir.Error, ValueError) as error:
            ended.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(30)
    loader.close()
    thread.join(30)
    assert not thread.is_alive()
    assert len(ended) == 1


def test_files_that_stay_open_change_nothing(index):
    options = {"seed": 3, "clips": 2, "crop": "random", "crop_size": 12}
    with small(index, **options) as plain, small(index, keep_open=4, **options) as kept:
        assert pixels_of(plain) == pixels_of(kept)


def test_loaders_that_are_opened_and_closed_leave_no_memory_and_no_descriptors(index, memory_bytes):
    def use():
        for number in range(20):
            loader = small(index)
            next(iter(loader))
            if number % 2:
                loader.close()

    use()
    gc.collect()
    before, descriptors = memory_bytes(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        use()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert memory_bytes() - before < 8 << 20  # a leaked loader is several hundred kB


def run_script(script, *arguments, ready=None, wanted_signal=None):
    """Its exit code, output and errors; with `ready`, it gets the signal when it has printed that line."""
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        while ready is not None and child.stdout.readline().strip() != ready:
            assert child.poll() is None, child.stderr.read()
        if wanted_signal:
            child.send_signal(wanted_signal)
        try:
            output, errors = child.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        return child.returncode, output, errors


def test_ctrl_c_ends_a_loop_at_once(clips):
    script = """
        import sys, weir
        loader = weir.Loader(sys.argv[1], frames=16, size=None, concurrency=1, threads=1)
        try:
            while True:
                for batch in loader:
                    print("ready", flush=True)
        except KeyboardInterrupt:
            state = loader.state_dict()
            loader.close()
        print("ended", flush=True)
    """
    code, output, errors = run_script(script, clips, ready="ready", wanted_signal=signal.SIGINT)
    assert code == 0, errors
    assert output.split()[-1] == "ended"


def test_the_interpreter_ends_with_a_loader_that_works_and_one_that_a_daemon_uses(clips):
    script = """
        import sys, threading, weir
        loader, other = (weir.Loader(sys.argv[1], frames=2, size=16, batch_size=1) for _ in range(2))
        batches = iter(loader)
        kept = next(batches)
        seen = threading.Event()
        def work():
            while True:
                for batch in other:
                    seen.set()
        threading.Thread(target=work, daemon=True).start()
        seen.wait()
        print("ready", flush=True)
    """
    code, output, errors = run_script(script, clips)
    assert (code, output) == (0, "ready\n"), errors
    assert "Fatal" not in errors


def test_forked_children_use_a_loader_that_the_parent_has_used_or_not(clips):
    script = """
        import os, sys, warnings, weir
        warnings.simplefilter("ignore", DeprecationWarning)
        used, unused = (weir.Loader(sys.argv[1], frames=2, size=16, batch_size=2) for _ in range(2))
        index = used.index
        expected = [number for batch in weir.Loader(index, frames=2, size=16, batch_size=2) for number in batch.ids.tolist()]
        batches = iter(used)
        first = next(batches)
        child = os.fork()
        if child == 0:
            for loader in used, unused:
                assert [number for batch in loader for number in batch.ids.tolist()] == expected
                loader.close()
            bytes(memoryview(first))
            print("child", flush=True)
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        rest = [number for batch in batches for number in batch.ids.tolist()]
        assert first.ids.tolist() + rest == expected
        print("parent", flush=True)
    """
    code, output, errors = run_script(script, clips)
    assert (code, output) == (0, "child\nparent\n"), errors


# ---- with other parts


def test_a_loader_is_a_source_of_a_pipeline_of_functions(index):
    with small(index) as alone:
        expected = ids_of(alone)
    with small(index) as loader:
        built = weir.Pipeline().add_source(loader).pipe(lambda batch: (batch.ids.tolist(), batch), concurrency=2,
                                                        output_order="input").add_sink(2).build(threads=2)
        with built:
            results = list(built)
    assert [number for ids, _ in results for number in ids] == expected
    assert all(batch.frames.shape == (4, 2, 16, 16, 3) for _, batch in results)


def test_classes_keep_the_condition_of_the_index(folder):
    index = weir.Index.build(folder).select(where="duration < 2")
    assert sorted(set(index.classes)) == ["dance", "sing"]
    loader = weir.Loader(index, frames=2, size=16, classes=["sing"])
    assert len(loader.index) == sum("sing" in row["path"] for row in index.rows())


def test_an_epoch_that_failed_at_its_first_batch_is_over(folder, tmp_path):
    import shutil

    shutil.copytree(folder, tmp_path / "videos")
    with weir.Loader(tmp_path / "videos", frames=2, size=16, shuffle=False, on_error="raise", batch_size=1) as loader:
        first = tmp_path / "videos/dance/0.mp4"
        data = first.read_bytes()
        first.write_bytes(b"x" * len(data))
        with pytest.raises(weir.Error):
            list(loader)
        shutil.copy2(f"{folder}/dance/0.mp4", first)
        assert len(list(loader)) == 8


# ---- what others write


def test_what_is_open_is_neither_copied_nor_pickled(clips):
    with weir.Loader(clips, frames=2, size=32, batch_size=2) as loader:
        for thing in (loader, loader.index):
            for make in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    make(thing)


def test_threads_that_share_a_loop_get_one_epoch(clips):
    with weir.Loader(clips, frames=2, size=32, batch_size=1) as loader:
        for epoch in range(3):
            loop, got = iter(loader), []
            threads = [threading.Thread(target=lambda: got.extend(batch.ids[0] for batch in loop)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(got) == list(range(6))
            assert loader.epoch == epoch + 1


@pytest.mark.parametrize("world", [1, 2])
@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_state_after_close_is_that_before(clips, world, taken):
    options = {"frames": 2, "size": 32, "batch_size": 1, "rank": 0, "world": world}
    with weir.Loader(clips, **options) as loader:
        loop = iter(loader)
        for _ in range(taken):
            next(loop)
        before, left = loader.state_dict(), loader.batches_left
        rest = [batch.ids[0] for batch in loop] if taken < 6 // world else []
    with weir.Loader(clips, **options) as loader:
        loop = iter(loader)
        for _ in range(taken):
            next(loop)
    after = loader.state_dict()  # its checkpoint may have more lines: of later epochs, of which nothing is done
    assert after["checkpoint"] is not None
    assert {**after, "checkpoint": None} == {**before, "checkpoint": None}
    assert loader.batches_left == left
    with weir.Loader(clips, **options) as other:
        other.load_state_dict(loader.state_dict())
        if rest:
            assert [batch.ids[0] for batch in other] == rest


def test_a_state_that_is_nonsense_changes_nothing(clips):
    with weir.Loader(clips, frames=2, size=32, batch_size=1) as loader:
        loop = iter(loader)
        next(loop)
        state = loader.state_dict()
        bad = [{**state, name: value} for name in ("epoch", "rank", "world", "seed", "step") for value in (-1, 1.5, float("nan"), "1", None)]
        bad += [{**state, "checkpoint": value} for value in (3, b"text", ["text"])]
        bad += [{key: value for key, value in state.items() if key != name} for name in state]
        for one in bad:
            with pytest.raises((ValueError, TypeError), match="state"):
                loader.load_state_dict(one)
        assert {**loader.state_dict(), "checkpoint": None} == {**state, "checkpoint": None}
        assert len(list(loop)) == 5


@pytest.mark.parametrize("options, message", [
    ({"dtype": "uint16"}, "dtype=\"uint16\" is for"),
    ({"pixel": "rgb48"}, "pixel='rgb48' is for"),
    ({"pixel": "yuv420p"}, "cannot be batched"),
    ({"crop_size": 64}, "larger than the pictures"),
    ({"size": (20, 30), "crop_size": (10, 31)}, "larger than the pictures"),
    ({"crop_size": 0}, "crop_size is 0"),
    ({"crop_size": (0, 5)}, "height of crop_size is 0"),
    ({"dtype": "float32", "std": 0}, "std is"),
    ({"dtype": "float32", "std": [1, 1, float("nan")]}, "std is"),
    ({"dtype": "float32", "mean": float("inf")}, "mean is"),
    ({"classes": []}, "classes is empty"),
    ({"stride": 1e-12}, "a stride is above 0"),
])
def test_options_that_cannot_work_fail_when_the_loader_is_made(clips, options, message):
    with pytest.raises(ValueError, match=message):
        weir.Loader(clips, **{"frames": 2, "size": 32, **options})


def test_classes_are_a_list_and_not_one_text(clips):
    with pytest.raises(TypeError, match="classes must be a list"):
        weir.Loader(clips, frames=2, size=32, classes="jump")
    with weir.Loader(clips, frames=2, size=32, batch_size=1) as loader, pytest.raises(TypeError, match="classes must be a list"):
        loader.index.select(classes="jump")


def test_sizes_of_numpy_are_sizes(clips):
    np = pytest.importorskip("numpy")
    for size, crop_size in ((np.int64(32), None), (np.int64(40), np.int64(32)), (np.array([40, 50]), np.array([32, 32]))):
        with weir.Loader(clips, frames=2, size=size, crop_size=crop_size, batch_size=1) as loader:
            assert next(iter(loader)).frames.shape == (1, 2, 32, 32, 3)


def test_a_table_of_columns_is_refused_as_such():
    class DataFrame:
        columns = ["path", "label"]

        def __iter__(self):
            return iter(self.columns)

    for table in ({"path": ["a.mp4"]}, DataFrame()):
        with pytest.raises(TypeError, match="a list of rows"):
            weir.Loader(table)
    for source in (None, 3):
        with pytest.raises(TypeError, match="the clips are a folder"):
            weir.Loader(source)


def test_arrays_of_a_batch_have_elements_of_each_dimension(clips):
    np = pytest.importorskip("numpy")
    with weir.Loader(clips, frames=2, size=32, batch_size=2) as loader:
        batch = next(iter(loader))
    values = np.asarray(batch.frames)
    assert repr(batch) == "<weir.Batch uint8 (2, 2, 32, 32, 3)>"
    assert (np.from_dlpack(batch.frames[1][1]) == values[1, 1]).all()
    assert (np.asarray(batch[1][0][31]) == values[1, 0, 31]).all()
    assert batch.frames[1][0][31][2][1] == values[1, 0, 31, 2, 1]
