"""The page in a browser without a window: it draws, without an error."""

import html
import json
import re
import shutil
import subprocess

import pytest

from tvm_rammer.report_page import report_html

from .plans import handed_over, record_of, repeated
from .test_page import NASTY, profile_of

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="neither chromium nor google-chrome is installed")


def drawn(page: str, tmp_path) -> str:
    """The document after its scripts ran."""
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    profile = f"--user-data-dir={tmp_path / 'browser'}"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", profile, "--dump-dom", path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def marks(document: str) -> dict[str, str]:
    """What the page's scripts noted at its root."""
    (root,) = re.findall(r"<html[^>]*>", document)
    return {name: html.unescape(value) for name, value in re.findall(r'data-(\w+)="([^"]*)"', root)}


def test_lanes_and_tables_are_drawn(tmp_path):
    record = record_of(
        handed_over(["conv", "relu"]), handed_over([NASTY, "pool"], "region1_0"), stock=(("sort", "no rKernel"),)
    )
    comparison = {
        "results": {
            "rammer": {"median_ms": 1.0, "p90_ms": 1.5, "n": 9},
            "stock": {"median_ms": 2.5, "p90_ms": 3.0, "n": 8},
        },
        "ratios": {"stock": 2.5},
        "missing": {"openvino": "the package openvino is not installed"},
    }
    page = report_html(record, NASTY, profile=profile_of(record), comparison=comparison)
    document = drawn(page, tmp_path)
    noted = marks(document)
    assert "error" not in noted
    assert int(noted["drawn"]) == 2 * 2 * (3 + 3)
    shown = html.unescape(re.sub(r"<script.*?</script>|<wbr>", "", document, flags=re.S))
    assert shown.count("<tr") == (1 + 4) + (1 + 1) + (1 + 3)
    assert f">{NASTY}</h1>" in shown
    for text in ("f_conv", "rows parts2", "no rKernel", "the package openvino is not installed", "2.50"):
        assert text in shown


BY_HAND = """<script>
const canvas = document.getElementById("canvas"), tip = document.getElementById("tip"), told = [];
const press = (key) => {
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
  told.push(tip.hidden ? "" : tip.innerText);
};
["ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "+", "c", "0", "Escape"].forEach(press);
const wheel = { deltaY: -100, bubbles: true, cancelable: true };
told.push(String(!canvas.dispatchEvent(new WheelEvent("wheel", wheel))));
const find = document.getElementById("find");
find.value = "relu";
find.dispatchEvent(new Event("input"));
told.push(document.getElementById("found").textContent);
const names = () => [...document.querySelectorAll("#kernels tbody tr")].map((row) => row.cells[0].textContent).join();
told.push(names());
document.querySelector("#kernels th button").click();
told.push(names());
document.querySelector("#kernels tbody tr").click();
told.push(document.querySelector("#kernels tr.chosen").cells[0].textContent);
document.getElementById("scheme").click();
told.push(document.documentElement.dataset.scheme);
document.documentElement.dataset.told = JSON.stringify(told);
</script></body>"""


def test_keys_wheel_search_and_sorting(tmp_path):
    record = record_of(handed_over(["conv", "relu", "add"]))
    page = report_html(record, "model", profile=profile_of(record)).replace("</body>", BY_HAND)
    noted = marks(drawn(page, tmp_path))
    assert "error" not in noted
    first, wait, relu, below, measured, *_, gone, wheel, found, by_time, by_name, chosen, scheme = json.loads(
        noted["told"]
    )
    assert first.startswith("conv\n")
    assert wait.startswith("Wait before relu\n")
    assert re.search(r"waits for\s+conv \(2 signals\)", wait)
    assert relu.startswith("relu\n")
    assert re.search(r"predicted\s+2.00 µs.*\s+measured\s+4.00 µs", relu)
    assert re.search(r"vEU\s+1\n", below)
    assert re.search(r"waited for\s+conv on vEU 0", below)
    assert re.search(r"vEU\s+0\n", measured)
    assert "critical path of the measured run" in measured
    assert gone == ""
    assert (wheel, found) == ("true", "1 operator")
    assert (by_time, by_name) == ("f_add,f_relu,f_conv", "f_add,f_conv,f_relu")
    assert (chosen, scheme) == ("f_add", "dark")


BY_LOOPS = """<script>
const canvas = document.getElementById("canvas"), tip = document.getElementById("tip"), told = [];
const button = document.getElementById("loops"), find = document.getElementById("find");
const press = (key) => {
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
  told.push(tip.hidden ? "" : tip.innerText);
};
["ArrowRight", "ArrowRight", "ArrowRight", "Enter", "ArrowRight", "c"].forEach(press);
told.push(button.textContent);
button.click();
told.push(button.textContent);
press("ArrowRight");
find.value = "tanh";
find.dispatchEvent(new Event("input"));
told.push(document.getElementById("found").textContent, button.textContent);
document.documentElement.dataset.told = JSON.stringify(told);
</script></body>"""


def test_a_loop_is_a_block_that_can_be_opened(tmp_path):
    loop = repeated(handed_over(["product", "tanh"], "region1_0"), 40)
    record = record_of(handed_over(["conv"]), loop)
    page = report_html(record, "model", profile=profile_of(record)).replace("</body>", BY_LOOPS)
    noted = marks(drawn(page, tmp_path))
    assert "error" not in noted
    assert int(noted["drawn"]) == 2 * 2 * (1 + 1)
    conv, block, last, opened, step, path, button, closed, again, found, button_found = json.loads(noted["told"])
    assert conv.startswith("conv\n")
    assert block == last
    assert block.startswith("Loop of 40 steps\n")
    assert re.search(r"rProgram\s+region1_0\n", block)
    assert len(re.findall(r"a step\s+[0-9.]+ µs", block)) == 2
    assert opened == ""
    assert (step.split("\n")[0], path.split("\n")[0]) == ("product@0", "tanh@0")
    assert (button, closed) == ("Close loops", "Open loops")
    assert again == block
    assert found.endswith("operators")
    assert button_found == "Close loops"


def test_only_the_plan_of_another_machine(tmp_path):
    page = report_html(record_of(handed_over(["a", "b"])), "model", note="All times are predicted.")
    document = drawn(page, tmp_path)
    assert int(marks(document)["drawn"]) == 6
    assert "error" not in marks(document)
    assert "Measured" not in re.sub(r"<script.*?</script>", "", document, flags=re.S)
    assert '<p class="note" id="note">All times are predicted.</p>' in document


def test_a_model_of_stock_calls_only(tmp_path):
    document = drawn(report_html(record_of(stock=(("sort", "no rKernel"),)), "model"), tmp_path)
    assert marks(document)["drawn"] == "0"
    assert "error" not in marks(document)
    assert re.search(r'<section id="lanes"[^>]* hidden="">', document)


def test_thousands_of_operators_draw_what_is_visible(tmp_path):
    record = record_of(handed_over([f"operator_{n}" for n in range(5000)]))
    noted = marks(drawn(report_html(record, "model", profile=profile_of(record)), tmp_path))
    assert "error" not in noted
    assert 500 < int(noted["drawn"]) < 2 * 2 * 1300


def test_an_error_of_the_page_is_told(tmp_path):
    page = report_html(record_of(handed_over(["a"])), "model").replace('"facts":', '"lost":')
    document = drawn(page, tmp_path)
    assert "launch_us" in marks(document)["error"]
    assert "This page could not be drawn: " in document
