"""The function for Ray Data that README shows."""

import re
from pathlib import Path

import pytest

import weir

numpy = pytest.importorskip("numpy")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")


def function_of_readme():
    text = (Path(__file__).parents[1] / "README.md").read_text()
    code = re.search(r"```python\n(def decode\(rows\):.*?\n)\n", text, re.DOTALL)[1]
    names = {"numpy": numpy, "weir": weir}
    exec(code, names)
    return names["decode"], code


def test_the_function_decodes_rows_and_keeps_failures(clip, tmp_path):
    decode, _ = function_of_readme()
    rows = decode({"path": numpy.array([clip, str(tmp_path / "none.mp4")])})
    assert rows["frames"].shape == (2, 8, 224, 224, 3)
    assert rows["frames"][0].any() and not rows["frames"][1].any()
    assert rows["error"][0] == "" and "none.mp4" in rows["error"][1]


def test_ray_data_reads_videos(clip):
    _, code = function_of_readme()

    def decode(rows):
        names = {"numpy": __import__("numpy"), "weir": __import__("weir")}
        exec(code, names)
        return names["decode"](rows)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        dataset = ray.data.from_items([{"path": clip} for _ in range(6)]).map_batches(decode, batch_size=3, num_cpus=2)
        rows = dataset.take_all()
    finally:
        ray.shutdown()
    expected = numpy.asarray(weir.decode_many([clip], frames=8, size=(224, 224))[0])
    assert len(rows) == 6 and all(numpy.array_equal(row["frames"], expected) and row["error"] == "" for row in rows)
