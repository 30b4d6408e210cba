"""weir.Index: folders, lists, rows, archives; broken files; columns and conditions."""

import json
import os
import signal
import subprocess
import sys
import tarfile

import pytest

import weir


@pytest.fixture
def mixed(clips, tmp_path):
    """A folder with a good file, half a file and a text that is called .mp4."""
    data = (clips / "walk" / "0.mp4").read_bytes()
    (tmp_path / "good.mp4").write_bytes(data)
    (tmp_path / "half.mp4").write_bytes(data[: len(data) // 2])
    (tmp_path / "text.mp4").write_text("this is no video")
    (tmp_path / "notes.txt").write_text("nor is this")
    return tmp_path


def paths_of(clips):
    return sorted(str(path) for path in clips.glob("*/*.mp4"))


def test_a_folder_is_indexed_with_its_subfolders_as_classes(clips):
    index = weir.Index.build(clips)
    assert len(index) == 6
    assert index.classes == ["jump", "walk"]
    assert index.path is None
    assert index.broken == []
    assert [row["path"] for row in index.rows()] == [f"{name}/{i}.mp4" for name in ("jump", "walk") for i in range(3)]


def test_files_that_cannot_be_used_are_listed_with_the_reason(mixed):
    index = weir.Index.build(mixed)
    assert len(index) == 1
    assert [broken.path for broken in index.broken] == ["half.mp4", "text.mp4"]
    assert all(broken.status == "EDATA" and broken.reason for broken in index.broken)


def test_a_folder_without_videos_says_so(tmp_path):
    with pytest.raises(weir.Error) as caught:
        weir.Index.build(tmp_path)
    assert str(tmp_path) in str(caught.value)


def test_a_missing_folder_is_a_FileNotFoundError(tmp_path):
    with pytest.raises(FileNotFoundError):
        weir.Index.build(tmp_path / "missing")


def test_an_index_in_a_file_is_opened_again_and_updated(clips, tmp_path):
    file = tmp_path / "clips.weir"
    first = weir.Index.build(clips, file)
    assert first.path == file
    assert first.progress["num_indexed"] == 6
    again = weir.Index.build(clips, file)
    assert again.progress["num_indexed"] == 0
    assert again.progress["num_unchanged"] == 6
    assert weir.Index(file).fingerprint == first.fingerprint


def test_a_condition_chooses_clips_and_changes_the_fingerprint(clips):
    index = weir.Index.build(clips)
    walk = index.select(where="label = 'walk'")
    assert len(walk) == 3
    assert walk.fingerprint != index.fingerprint
    assert len(walk.rows()) == 3
    assert len(weir.Index.build(clips, where="num_frames > 100 OR label = 'jump'")) == 3


def test_a_condition_that_is_no_SQL_is_a_ValueError(clips):
    with pytest.raises(ValueError, match="syntax"):
        weir.Index.build(clips, where="label == (")


def test_rows_have_columns_of_three_kinds_and_missing_values(clips):
    paths = paths_of(clips)
    rows = [{"path": path, "score": i / 2, "take": i, "note": f"n{i}" if i else None} for i, path in enumerate(paths)]
    index = weir.Index.build(rows)
    assert index.columns == {"score": "real", "take": "integer", "note": "text"}
    assert len(index.select(where="score > 1 AND take < 5")) == 2
    assert len(index.select(where="note IS NULL")) == 1


def test_a_file_of_a_list_may_be_several_clips(clips):
    path = paths_of(clips)[0]
    index = weir.Index.build([{"path": path, "start": 0, "end": 1}, {"path": path, "start": 1.0}, path])
    assert [(row["start"], row["end"]) for row in index.rows()] == [(None, 1), (1, None), (None, None)]


def test_labels_that_are_numbers_are_in_the_order_of_numbers(clips):
    labels = [11, 2, 0, 1, 10, 9]
    index = weir.Index.build(paths_of(clips), labels=labels)
    assert index.classes == ["0", "1", "2", "9", "10", "11"]


@pytest.mark.parametrize("name", ["list.csv", "list.tsv", "list.json", "list.jsonl", "list.txt"])
def test_files_of_lists_are_read_with_paths_relative_to_them(clips, name):
    rows = [{"path": f"walk/{i}.mp4", "label": "w", "start": "0.5" if i else "", "score": str(i)} for i in range(3)]
    file = clips / name
    if name.endswith("sv"):
        separator = "," if name.endswith(".csv") else "\t"
        file.write_text("\n".join(separator.join(row) for row in [list(rows[0])] + [list(row.values()) for row in rows]))
    elif name == "list.txt":
        file.write_text("".join(row["path"] + "\n" for row in rows))
    else:
        values = [{**row, "start": float(row["start"] or 0), "score": int(row["score"])} for row in rows]
        file.write_text(json.dumps(values) if name == "list.json" else "\n".join(map(json.dumps, values)))
    try:
        index = weir.Index.build(file)
    finally:
        file.unlink()
    assert len(index) == 3
    if name != "list.txt":
        assert index.classes == ["w"]
        assert index.columns == {"score": "integer"}
        assert [row["start"] for row in index.rows()] == [None, 0.5, 0.5]


def test_numbers_with_leading_zeros_stay_texts(clips, tmp_path):
    file = tmp_path / "list.csv"
    file.write_text("path,code\n" + "".join(f"{path},00{i}\n" for i, path in enumerate(paths_of(clips))))
    assert weir.Index.build(file).columns == {"code": "text"}


def test_a_table_without_paths_names_the_column(tmp_path):
    (tmp_path / "list.csv").write_text("file\na.mp4\n")
    with pytest.raises(ValueError, match="path"):
        weir.Index.build(tmp_path / "list.csv")


@pytest.mark.parametrize("rows", [[5], [{"label": "x"}], [("a", "b", "c")], []])
def test_rows_that_are_none_are_refused(rows):
    with pytest.raises((TypeError, ValueError)):
        weir.Index.build(rows)


def test_labels_of_another_number_are_refused(clips):
    with pytest.raises(ValueError, match="5 labels for 6"):
        weir.Index.build(paths_of(clips), labels=["a"] * 5)


def test_the_members_of_an_archive_are_clips(clips, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for path in paths_of(clips):
            archive.add(path, arcname=os.path.relpath(path, clips))
    for source in (tmp_path, tmp_path / "a.tar"):
        index = weir.Index.build(source, tar=True)
        assert len(index) == 6
        assert index.classes == ["jump", "walk"]


def test_progress_is_told_and_an_exception_in_it_ends_the_build(clips):
    told = []
    weir.Index.build(clips, progress=told.append)
    assert told[-1]["num_found"] == 6

    def fail(numbers):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weir.Index.build(clips, progress=fail)


def test_a_build_leaves_standard_error_alone_if_it_is_no_terminal(clips, capfd):
    weir.Index.build(clips)
    assert capfd.readouterr().err == ""


def test_an_index_of_another_kind_is_a_weir_Error(clips, tmp_path):
    (tmp_path / "x.weir").write_text("text")
    with pytest.raises(weir.Error, match="x.weir"):
        weir.Index(tmp_path / "x.weir")


def test_datasets_outlive_the_index_in_memory_that_they_are_of(clips):
    index = weir.Index.build(clips)
    walk = index.select(where="label = 'walk'")
    del index
    assert len(walk.select()) == 6


BUILD = """
import sys, weir
print("begun", flush=True)
def progress(numbers):
    print("told", flush=True)
while True:
    weir.Index.build(sys.argv[1], progress=progress)
"""


def test_ctrl_c_ends_a_build(clips):
    with subprocess.Popen([sys.executable, "-c", BUILD, str(clips)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as child:
        while child.stdout.readline() != "told\n":
            pass
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors


def test_if_all_files_are_broken_the_error_says_why(tmp_path):
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / name).write_text("not a video")
    with pytest.raises(weir.Error, match="no clip in .* can be used; the first of 2, .*a.mp4: cannot open"):
        weir.Loader(tmp_path, frames=2)
    with pytest.raises(weir.Error, match="the first of 1, "):
        weir.Index.build([str(tmp_path / "b.mp4")])


def test_texts_are_not_cut_at_a_zero_character(clips):
    path = str(clips / "jump" / "0.mp4")
    for row in ({"path": path, "note": "a\0b"}, {"path": path, "label": "a\0b"}, {"path": path + "\0"}):
        with pytest.raises(ValueError, match="zero character|null byte"):
            weir.Index.build([row])
    with pytest.raises(ValueError, match="zero character"):
        weir.span("a\0b").__enter__()
