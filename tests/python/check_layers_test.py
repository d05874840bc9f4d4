"""scripts/check_layers.py finds what it is there to find."""

import importlib.util
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "scripts" / "check_layers.py"
_spec = importlib.util.spec_from_file_location("check_layers", _SCRIPT)
check_layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_layers)


def faults_of(root, name, text, readme=True):
    """Faults of a tree that holds this file alone, READMEs aside."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    folder = path.parent
    while readme and folder != root:
        (folder / "README.md").touch()
        folder = folder.parent
    return check_layers.check_tree(root)


LEGAL = [
    ("apps/main.cpp", '#include "mlxcel/core/error.h"'),
    ("apps/convert.cpp", '#include "mlxcel/weights/convert/gguf.h"'),
    ("mlxcel/engine/a.cpp", '#include "mlxcel/cache/blocks.h"'),
    ("mlxcel/cache/a.cpp", '#include "mlxcel/backend/backend.h"'),
    ("mlxcel/loading/a.cpp", '#include "mlxcel/models/text/qwen3.h"'),
    ("mlxcel/loading/a.cpp", '#include "mlxcel/tokenizer/tokenizer.h"'),
    ("mlxcel/models/text/qwen3.cpp", '#include "mlxcel/models/text/qwen3.h"'),
    ("mlxcel/models/text/qwen3.cpp", '#include "mlxcel/models/text/fields.h"'),
    ("mlxcel/models/text/qwen3.cpp", '#include "mlxcel/nn/decoder.h"'),
    ("mlxcel/backend/graph/a.cpp", "#include <mlx/mlx.h>\nmx::array a();"),
    ("mlxcel/backend/graph/a.h", "#include <mlx/array.h>"),
    ("mlxcel/backend/cpu/a.cpp", "#include <immintrin.h>\n__m256i x;"),
    ("mlxcel/backend/cpu/a.cpp", '#include "mlxcel/backend/cpu/view.h"'),
    ("mlxcel/core/os_linux.cpp", "#include <sys/mman.h>"),
    ("mlxcel/hub/download/http.cpp", "#include <curl/curl.h>"),
    ("mlxcel/core/json.cpp", "#include <nlohmann/json.hpp>"),
    ("mlxcel/core/json.h", "#include <nlohmann/json_fwd.hpp>"),
    ("mlxcel/nn/a.cpp", "// mx::array and _mm_add_ps in a comment\n"),
]

PLANTED = [
    ("mlxcel/core/a.cpp", '#include "mlxcel/config/config.h"',
     "core may not include config"),
    ("mlxcel/nn/a.cpp", '\n# include "mlxcel/models/text/qwen3.h"',
     "nn may not include models"),
    ("mlxcel/weights/a.cpp", '#include "mlxcel/backend/backend.h"',
     "weights may not include backend"),
    ("mlxcel/engine/a.cpp", '#include "apps/command.h"',
     "engine may not include apps"),
    ("mlxcel/tokenizer/a.cpp", '#include "mlxcel/config/config.h"',
     "tokenizer may not include config"),
    ("mlxcel/chat/a.cpp", '#include "mlxcel/tokenizer/tokenizer.h"',
     "chat may not include tokenizer"),
    ("mlxcel/weights/convert/a.cpp", '#include "mlxcel/tokenizer/models/bpe.h"',
     "weights may not include tokenizer"),
    ("mlxcel/cache/a.cpp", '#include "mlxcel/nn/decoder.h"',
     "cache may not include nn"),
    ("mlxcel/backend/cpu/a.cpp", '#include "mlxcel/cache/blocks.h"',
     "backend may not include cache"),
    ("mlxcel/nn/a.cpp", '#include "mlxcel/backend/cpu/view.h"',
     "only backend/cpu includes its own files"),
    ("mlxcel/backend/cuda/a.cpp", '#include "mlxcel/backend/graph/a.h"',
     "only backend/graph includes its own files"),
    ("mlxcel/loading/a.cpp", '#include "mlxcel/weights/convert/gguf.h"',
     "never a load path"),
    ("mlxcel/models/text/qwen3.cpp", '#include "mlxcel/models/text/llama.h"',
     "a model family never includes another (llama)"),
    ("mlxcel/models/text/fields.h", '#include "mlxcel/models/text/llama.h"',
     "a model family never includes another (llama)"),
    ("mlxcel/models/vision/llama.cpp", '#include "mlxcel/models/text/llama.h"',
     "a model family never includes another (llama)"),
    ("mlxcel/server/a.cpp", '#include "mlxcel/models/text/llama.h"',
     "server sees models through loading only"),
    ("mlxcel/utils/a.cpp", "int a;", "unknown layer utils"),
    ("mlxcel/core/a.cpp", '#include "mlxcel/utils/a.h"',
     "unknown layer utils"),
    ("mlxcel/core/a.cpp", '#include "tests/helpers.h"',
     "tests are included by tests only"),
    ("mlxcel/nn/a.cpp", "#include <mlx/mlx.h>", "MLX stays in"),
    ("mlxcel/nn/a.cpp", "int x;\nmx::array a();", "MLX stays in"),
    ("mlxcel/backend/cpu/a.cpp", "namespace mx = mlx::core;", "MLX stays in"),
    ("mlxcel/core/a.cpp", "#include <immintrin.h>", "intrinsics stay in"),
    ("mlxcel/nn/a.cpp", "auto s = _mm256_add_ps(a, b);", "intrinsics stay in"),
    ("apps/a.cpp", "#include <unistd.h>", "system calls stay in"),
    ("mlxcel/core/file.cpp", "#include <sys/mman.h>", "system calls stay in"),
    ("mlxcel/hub/resolve.cpp", "#include <curl/curl.h>",
     "the network stays in hub/download"),
    ("mlxcel/core/json.h", "#include <nlohmann/json.hpp>",
     "too heavy for a header"),
    ("mlxcel/core/log.h", "#include <fmt/format.h>", "too heavy for a header"),
]


@pytest.mark.parametrize("name,text", LEGAL)
def test_legal(tmp_path, name, text):
    assert faults_of(tmp_path, name, text) == []


@pytest.mark.parametrize("name,text,fault", PLANTED)
def test_planted_violation(tmp_path, name, text, fault):
    found = faults_of(tmp_path, name, text)
    assert len(found) == 1 and fault in found[0], found
    assert found[0].startswith(f"{name}:{text.count(chr(10)) + 1}: ")


def test_unrooted_include(tmp_path):
    (tmp_path / "mlxcel/core").mkdir(parents=True)
    (tmp_path / "mlxcel/core/b.h").touch()
    found = faults_of(tmp_path, "mlxcel/core/a.cpp", '#include "b.h"')
    assert found == ['mlxcel/core/a.cpp:1: "b.h": includes are rooted']


def test_missing_readme(tmp_path):
    (tmp_path / "mlxcel").mkdir()
    (tmp_path / "mlxcel/README.md").touch()
    found = faults_of(tmp_path, "mlxcel/core/a.cpp", "", readme=False)
    assert found == ["mlxcel/core:1: has no README.md"]


def test_large_file(tmp_path):
    size = (1 << 20) + 1
    assert faults_of(tmp_path, "data/fits", "x" * (size - 1)) == []
    found = faults_of(tmp_path, "data/large", "x" * size)
    assert found == ["data/large:1: larger than 1 MB"]


def test_exit_status(tmp_path, capsys):
    faults_of(tmp_path, "mlxcel/core/a.cpp", "")
    assert check_layers.main([str(tmp_path)]) == 0
    faults_of(tmp_path, "mlxcel/core/a.cpp", '#include "mlxcel/nn/a.h"')
    assert check_layers.main([str(tmp_path)]) == 1
    assert "core may not include nn" in capsys.readouterr().out
