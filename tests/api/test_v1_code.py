# SPDX-License-Identifier: Apache-2.0
"""Code in sandboxes: contexts and runs, in the languages of the test runtime."""
import glob
import pathlib
import shutil
import subprocess

import pytest
from client import check_problem, together, until
from records import NDJSON, SSE, Records

TOP = "/api/v1"
needs_node = pytest.mark.skipif(not shutil.which("node", path="/usr/bin:/bin:/usr/local/bin"), reason="no node in /usr for a guest")
needs_r = pytest.mark.skipif(not shutil.which("Rscript", path="/usr/bin"), reason="no R in /usr for a guest")
needs_java = pytest.mark.skipif(not glob.glob("/usr/lib/jvm/*/bin/jshell"), reason="no jshell in /usr for a guest")


def run(api, sandbox, code, **fields):
    answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": code, **fields})
    assert answer.status == 200, str(answer)
    return answer.json


def value(told):
    """The main result as text."""
    assert "error" not in told, (told["error"], told["stderr"])
    return [one for one in told["results"] if one["main"]][0]["data"]["text/plain"]


def test_python_keeps_what_code_defines(api, sandbox):
    first = run(api, sandbox, "import os\nx = 40\nprint('hello', x)\nos.system('echo out; echo err >&2')\nx + 2")
    assert value(first) == "42" and first["count"] == 1 and first["language"] == "python"
    assert "hello 40\n" in first["stdout"] and "out\n" in first["stdout"] and first["stderr"] == "err\n" and not first["truncated"]
    second = run(api, sandbox, "x *= 2\n{'x': x}")
    assert second["context"] == first["context"] and second["count"] == 2 and second["stdout"] == ""
    assert second["results"][0]["data"] == {"text/plain": "{'x': 80}", "application/json": {"x": 80}}
    assert run(api, sandbox, "None")["results"] == [] and run(api, sandbox, "x;")["results"] == []


def test_errors_have_a_traceback_and_the_context_goes_on(api, sandbox):
    told = run(api, sandbox, "def f():\n    return 1 / 0\nf()")
    assert told["error"]["name"] == "ZeroDivisionError" and told["error"]["value"] == "division by zero"
    assert "return 1 / 0" in told["error"]["traceback"] and "line 2, in f" in told["error"]["traceback"]
    assert run(api, sandbox, "def f(")["error"]["name"] == "SyntaxError"
    assert run(api, sandbox, "raise SystemExit(3)")["error"]["name"] == "SystemExit"
    assert value(run(api, sandbox, "f.__name__")) == "f"


def test_rich_values(api, sandbox):
    told = run(api, sandbox, "class A:\n def _repr_html_(self): return '<b>x</b>'\n def _repr_png_(self): return b'png'\n"
                             " def _repr_latex_(self): return '$x$'\ndisplay(A())\nA()")
    assert [one["main"] for one in told["results"]] == [False, True]
    assert told["results"][1]["data"].items() >= {"text/html": "<b>x</b>", "image/png": "cG5n", "text/latex": "$x$"}.items()
    assert value(run(api, sandbox, "import asyncio\nawait asyncio.sleep(0)\n'awaited'")) == "awaited"
    assert run(api, sandbox, "!echo from a shell")["stdout"] == "from a shell\n"


NOTEBOOK = r'''!echo "it's a shell"
text = """
!echo no
%time
""" + "a \
%cd /"
rest = (17
  %time)
if True:  # it's (
    %time kept = text.count("!")
    !echo $((1 + 1))
[text, rest, kept]
'''


def test_lines_of_a_text_are_for_no_shell(api, sandbox):
    run(api, sandbox, "time = 10")
    told = run(api, sandbox, NOTEBOOK)
    assert value(told) == repr(["\n!echo no\n%time\na %cd /", 7, 1]) and told["stdout"] == "it's a shell\n2\n"


def test_lines_for_a_shell_need_no_bash(api, sandbox):
    run(api, sandbox, "import os\nos.mkdir('/tmp/few')\nos.symlink('/bin/sh', '/tmp/few/sh')\nos.environ['PATH'] = '/tmp/few'")
    told = run(api, sandbox, "!echo from $0")
    assert "error" not in told and told["stdout"] == "from sh\n"


def test_env_is_for_one_run(api, sandbox):
    assert value(run(api, sandbox, "import os; os.environ['A']", env={"A": "b"})) == "b"
    assert run(api, sandbox, "os.environ['A']")["error"]["name"] == "KeyError"


@pytest.mark.parametrize("format", [NDJSON, SSE])
def test_lines_come_as_they_are_written(api, sandbox, format):
    code = "import os, time\nprint('first', flush=True)\nwhile not os.path.exists('/tmp/go'): time.sleep(0.01)\n7"
    records = Records(api, "POST", f"{TOP}/sandboxes/{sandbox.id}/code", {"code": code}, accept=format)
    assert records.status == 200 and records.next().event == "started"
    assert records.next().data["text"] == "first\n"  # while it still runs
    sandbox.write_all({"/tmp/go": b""})
    seen = []
    while record := records.next():
        seen.append((record.event, record.data.get("data")))
    assert seen == [("result", {"text/plain": "7"}), ("end", None)]


def test_a_client_that_goes_interrupts(api, sandbox):
    code = "import time\ntry:\n    print('on', flush=True)\n    time.sleep(1000)\nexcept KeyboardInterrupt:\n    was_interrupted = True\n    raise"
    records = Records(api, "POST", f"{TOP}/sandboxes/{sandbox.id}/code", {"code": code}, accept=NDJSON)
    assert records.next().event == "started" and records.next().data["text"] == "on\n"
    records.raw.close()
    assert value(run(api, sandbox, "was_interrupted")) == "True"  # waits for its turn


def test_time_is_bounded(api, sandbox):
    told = run(api, sandbox, "y = 1\nwhile True: pass", timeoutMs=300)
    assert told["error"]["name"] == "TimeoutError" and "300 ms" in told["error"]["value"]
    assert value(run(api, sandbox, "y")) == "1"


def test_contexts_are_apart(api, sandbox):
    path = f"{TOP}/sandboxes/{sandbox.id}/contexts"
    made = [api.post(path, {"directory": "/tmp"}).json for _ in range(2)]
    assert [one["language"] for one in made] == ["python"] * 2 and made[0]["directory"] == "/tmp" and made[0]["running"]
    run(api, sandbox, "z = 1", context=made[0]["id"])
    assert value(run(api, sandbox, "import os; os.getcwd()", context=made[0]["id"])) == "/tmp"
    assert run(api, sandbox, "z", context=made[1]["id"])["error"]["name"] == "NameError"
    assert {one["id"] for one in api.get(path).json["items"]} == {one["id"] for one in made}
    assert api.post(f"{path}/{made[0]['id']}/restart").status == 204
    assert run(api, sandbox, "z", context=made[0]["id"])["error"]["name"] == "NameError"
    assert api.delete(f"{path}/{made[1]['id']}").status == 204
    check_problem(api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": "1", "context": made[1]["id"]}), 404, "not_found", made[1]["id"][4:])
    assert api.get(f"{path}/{made[0]['id']}").json["id"] == made[0]["id"]


def test_an_interpreter_that_dies_says_why_and_a_new_one_comes(api, sandbox):
    first = run(api, sandbox, "import os\nos._exit(9)")
    assert first["error"]["name"] == "ContextEnded" and "exit code 9" in first["error"]["value"]
    assert value(run(api, sandbox, "1 + 1")) == "2"


@pytest.mark.parametrize("code, reason", [("os.kill(os.getpid(), 9)", "signal 9"), ("os.kill(os.getpid(), 11)", "signal 11"), ("os._exit(0)", "exit code 0")])
def test_the_reason_of_an_end_is_the_one_it_had(api, sandbox, code, reason):
    context = api.post(f"{TOP}/sandboxes/{sandbox.id}/contexts", {"directory": "/tmp"}).json["id"]
    told = run(api, sandbox, "import os\n" + code, context=context)
    assert told["error"]["name"] == "ContextEnded" and reason in told["error"]["value"] and "new one" in told["error"]["value"], told
    assert value(run(api, sandbox, "import os; os.getcwd()", context=context)) == "/tmp"  # of the same context, as it was made


def test_an_interpreter_that_uses_up_the_memory_says_so(api, new):
    sandbox = new(resources={"memory": "128Mi"})
    run(api, sandbox, "kept = 1")
    told = run(api, sandbox, "x = []\nwhile True: x.append(bytearray(1 << 20))")
    assert told["error"]["name"] in ("ContextEnded", "MemoryError"), told
    if told["error"]["name"] == "ContextEnded":
        assert "ran out of the sandbox's memory" in told["error"]["value"]
        assert run(api, sandbox, "kept")["error"]["name"] == "NameError"
    assert value(run(api, sandbox, "1 + 1")) == "2"


def test_interrupt(api, sandbox):
    path = f"{TOP}/sandboxes/{sandbox.id}"
    context = api.post(f"{path}/contexts", {}).json["id"]
    records = Records(api, "POST", f"{path}/code", {"code": "print(1, flush=True)\nwhile True: pass", "context": context}, accept=NDJSON)
    assert records.next().event == "started" and records.next().event == "stdout"
    assert api.post(f"{path}/contexts/{context}/interrupt").status == 204
    assert records.next().data["name"] == "KeyboardInterrupt" and records.next().event == "end"


def test_bash_keeps_its_directory_and_variables(api, sandbox):
    assert run(api, sandbox, "cd /tmp; X=5; f() { echo in f; }", language="bash")["results"] == []
    assert run(api, sandbox, "pwd; echo $X; f", language="shell")["stdout"] == "/tmp\n5\nin f\n"
    assert run(api, sandbox, "false", language="bash")["error"]["value"] == "1"
    assert run(api, sandbox, "sleep 1000", language="bash", timeoutMs=200)["error"]["name"] == "TimeoutError"
    assert run(api, sandbox, "echo still here", language="bash")["stdout"] == "still here\n"


def is_old(program="/usr/bin/node"):
    """Without names for sockets, such as Debian 12 has it."""
    return subprocess.run([program, "-e", "process.exit(Number(process.versions.uv.split('.')[1]) < 46 ? 0 : 1)"], check=False).returncode == 0


@needs_node
def test_javascript(api, new):
    sandbox = new(runtime="host:latest")
    if is_old():
        answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": "1", "language": "javascript"})
        return check_problem(answer, 400, "invalid_request", "'node' is too old", "'node 20'", "code-interpreter:latest")
    assert value(run(api, sandbox, "const a = 20; console.log('hi'); a + 1", language="javascript")) == "21"
    told = run(api, sandbox, "const a = await Promise.resolve({b: 2}); a", language="js")
    assert told["results"][0]["data"]["application/json"] == {"b": 2}
    assert run(api, sandbox, "throw new TypeError('no')", language="node")["error"]["value"] == "no"
    assert value(run(api, sandbox, "import fs from 'fs'; fs.existsSync('/')", language="js")) == "true"
    assert run(api, sandbox, "while (true) {}", language="js", timeoutMs=300)["error"]["name"] == "TimeoutError"
    assert value(run(api, sandbox, "a.b", language="js")) == "2"
    made = api.post(f"{TOP}/sandboxes/{sandbox.id}/contexts", {"language": "javascript", "directory": "/tmp"}).json["id"]
    assert value(run(api, sandbox, "process.cwd() + typeof a", context=made, timeoutMs=60000)) == "/tmpundefined"


@needs_node
def test_typescript(api, new):
    """By Node where that can, else by the package; where there is neither, the error says what to do."""
    if is_old():
        return  # as JavaScript is
    sandbox = new(runtime="host:latest")
    told = run(api, sandbox, "interface P { n: number }\nenum E { A = 4 }\nconst p: P = {n: 41};\nconst f = (x: number): number => x + 1;\nconsole.log(E.A as number);\nf(p.n)",
               language="typescript")
    if "error" in told and "TypeScript needs Node" in told["error"]["value"]:
        assert "npm install -g typescript" in told["error"]["value"] and not has_type_stripping()
        return
    assert value(told) == "42" and told["stdout"] == "4\n"
    assert value(run(api, sandbox, "f(p.n) as number", language="ts")) == "42"
    assert run(api, sandbox, "const x: = 1", language="ts")["error"]["name"] in ("SyntaxError", "Error", "ERR_INVALID_TYPESCRIPT_SYNTAX")


def has_type_stripping():
    return subprocess.run(["node", "-e", "process.exit(require('node:module').stripTypeScriptTypes ? 0 : 1)"], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def with_host(new):
    """A view of this machine's /usr, and of what R and Java read in its /etc."""
    sandbox = new(runtime="host:latest")
    for place in [*pathlib.Path("/etc").glob("R"), *pathlib.Path("/etc").glob("java-*")]:
        sandbox.write_all({str(file): file.read_bytes() for file in place.rglob("*") if file.is_file()})
    return sandbox


@needs_r
def test_r(api, with_host):
    sandbox = with_host
    first = run(api, sandbox, "x <- c(1, 2, 3)\ncat('hello\\n')\nmean(x) * 21", language="r", timeoutMs=120000)
    assert value(first) == "[1] 42" and first["stdout"] == "hello\n" and first["language"] == "r"
    assert value(run(api, sandbox, "paste('x has', length(x))", language="R")) == "x has 3"
    assert run(api, sandbox, "y <- 5", language="r")["results"] == []
    told = run(api, sandbox, "f <- function() stop('no good')\nf()", language="r")
    assert told["error"]["name"] == "simpleError" and told["error"]["value"] == "no good" and "Error in f()" in told["error"]["traceback"]
    assert "unexpected" in run(api, sandbox, "f <- (", language="r")["error"]["value"]
    assert "careful" in run(api, sandbox, "warning('careful')", language="r")["stderr"]
    assert value(run(api, sandbox, "Sys.getenv('A')", language="r", env={"A": "b=c"})) == "b=c"
    assert value(run(api, sandbox, "nchar(Sys.getenv('A'))", language="r")) == "[1] 0"
    assert run(api, sandbox, "while (TRUE) {}", language="r", timeoutMs=500)["error"]["name"] == "TimeoutError"
    assert value(run(api, sandbox, "y", language="r")) == "[1] 5"
    assert "exit code 3" in run(api, sandbox, "quit(status = 3)", language="r")["error"]["value"]
    assert run(api, sandbox, "y", language="r")["error"]["name"] == "simpleError"


@needs_r
def test_a_plot_of_r_is_a_picture(api, with_host):
    if subprocess.run(["Rscript", "-e", "quit(status = if (capabilities('cairo')) 0 else 1)"], check=False).returncode:
        pytest.skip("R was made without cairo")
    told = run(api, with_host, "plot(1:3)", language="r", timeoutMs=120000)
    assert [one["data"]["image/png"][:8] for one in told["results"] if "image/png" in one["data"]] == ["iVBORw0K"], told


@needs_java
def test_java(api, with_host):
    sandbox = with_host
    first = run(api, sandbox, "int x = 40;\nSystem.out.println(\"hello\");\nx + 2", language="java", timeoutMs=300000)
    assert value(first) == "42" and first["stdout"] == "hello\n", first
    assert value(run(api, sandbox, "int twice(int n) { return 2 * n; }\nList.of(twice(x))", language="java")) == "[80]"
    assert value(run(api, sandbox, "\"a\\tb\" + x", language="java")) == "a\tb40"
    assert run(api, sandbox, "x = 7", language="java")["results"] == []
    told = run(api, sandbox, "void f() { throw new IllegalStateException(\"no good\"); }\nf();", language="java")
    assert told["error"]["name"] == "IllegalStateException" and told["error"]["value"] == "no good"
    assert run(api, sandbox, "int y = \"text\";", language="java")["error"]["name"] == "CompileError"
    assert "variables" in run(api, sandbox, "1", language="java", env={"A": "b"})["error"]["value"]
    assert run(api, sandbox, "while (true) { }", language="java", timeoutMs=500)["error"]["name"] == "TimeoutError"
    assert value(run(api, sandbox, "x", language="java", timeoutMs=120000)) == "7"


def test_an_interpreter_that_is_not_installed_is_named(api, sandbox):
    """In a runtime with neither."""
    for language, program, package in (("r", "'R'", "r-base-core"), ("java", "'jshell'", "default-jdk-headless")):
        answer = api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": "1", "language": language})
        check_problem(answer, 400, "invalid_request", program, package)


def test_runs_of_one_context_take_turns(api, sandbox):
    told = together(*[lambda i=i: run(api, sandbox, f"import time\ntime.sleep(0.01)\n{i}") for i in range(8)])
    assert sorted(value(one) for one in told) == [str(i) for i in range(8)] and len({one["context"] for one in told}) == 1


def test_contexts_outlive_the_server(own_server):
    server = own_server()
    sandbox = server.client.create()
    first = run(server.client, sandbox, "kept = 'kept'")
    server.kill()
    server.start()
    again = run(server.client, sandbox, "kept")
    assert value(again) == "kept" and again["context"] == first["context"]
    assert server.client.delete(f"/sandbox/{sandbox.id}").status == 200
    server.end()


def test_a_context_waits_without_keeping_a_sandbox_alive(api, new):
    sandbox = new(timeout={"idle": "2s"})
    run(api, sandbox, "1")
    until(lambda: api.get(f"{TOP}/sandboxes/{sandbox.id}").json.get("state") in ("ended", "terminated", None) or
          api.get(f"{TOP}/sandboxes/{sandbox.id}").status != 200, "it to end")


def test_a_language_that_the_runtime_lacks(api, sandbox):
    check_problem(api.post(f"{TOP}/sandboxes/{sandbox.id}/code", {"code": "1", "language": "js"}), 400, "invalid_request", "'node'", "code-interpreter:latest")


def test_bad_input(api, sandbox):
    path = f"{TOP}/sandboxes/{sandbox.id}"
    check_problem(api.post(f"{path}/code", {}), 400, "invalid_request", field="code")
    check_problem(api.post(f"{path}/code", {"code": "1", "language": "cobol"}), 400, "invalid_request", "cobol", "python", field="language")
    check_problem(api.post(f"{path}/code", {"code": "1", "language": "python", "context": "ctx_" + "0" * 26}), 400, "invalid_request", field="language")
    check_problem(api.post(f"{path}/code", {"code": "1", "context": "ctx_" + "0" * 26}), 404, "not_found")
    check_problem(api.post(f"{path}/code", {"code": "1", "directory": "here"}), 400, "invalid_request", field="directory")
    check_problem(api.post(f"{TOP}/sandboxes/sbx_{'0' * 26}/code", {"code": "1"}), 404, "not_found")


def test_there_are_so_many_contexts_and_no_more(api, sandbox):
    path = f"{TOP}/sandboxes/{sandbox.id}/contexts"
    for _ in range(16):
        assert api.post(path, {}).status == 201
    check_problem(api.post(path, {}), 429, ("limit_reached", "full", "too_many"), "16 contexts")


def test_a_guest_that_plays_the_interpreter_cheats_itself_alone(api, sandbox):
    """It sends what is no JSON, what is no record, and lines without end: the server drops, bounds and goes on."""
    first = run(api, sandbox, "1")
    code = ("import os\nc = DRIVER if 'DRIVER' in globals() else None\nimport gc, socket\n"
            "s = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() > 2 and not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)][0]\n"
            "s.sendall(b'garbage\\n{\"type\": 5}\\n[]\\n\\n{\"type\":\"stdout\",\"text\":7}\\n{\"type\":\"nonsense\"}\\n')\n"
            "s.sendall(b'{\"type\":\"stdout\",\"text\":\"' + b'x' * (20 << 20))\n")
    told = run(api, sandbox, code)
    assert told["error"]["name"] in ("OutputLimit", "KeyboardInterrupt", "BrokenPipeError"), told
    assert value(run(api, sandbox, "2", context=first["context"])) == "2"


PLAYER = """
import gc, socket, threading
door = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() > 2 and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)][0]
door = socket.socket(fileno=__import__('os').dup(door.fileno()))
def play(one):
    try:
        one.recv(65536)
        SEND(one)
        one.recv(1)
    except OSError:
        pass
def serve():
    while True:
        one, _ = door.accept()
        threading.Thread(target=play, args=(one,), daemon=True).start()
def SEND(one):
    SENDS
for _ in range(4):
    threading.Thread(target=serve, daemon=True).start()
import time
while True: time.sleep(1)
"""


def peak_kib(server):
    return int(next(line for line in open(f"/proc/{server.pid}/status") if line.startswith("VmHWM")).split()[1])


@pytest.mark.parametrize("sends", [
    "one.sendall(b'{\"type\":\"stdout\",\"text\":\"'); [one.sendall(b'x' * (1 << 20)) for _ in range(15)]",  # no end of line, kept open
    "one.sendall(b'{\"type\":\"result\",\"main\":true,\"data\":[' + b'0,' * (7 << 20) + b'0]}\\n')",  # a tree many times as large as its text
    "[one.sendall(b'{\"type\":\"stdout\",\"text\":\"' + b'x' * (4 << 20) + b'\"}\\n') for _ in range(1000)]",  # without end
], ids=["a line without end", "a large tree", "lines without end"])
def test_what_a_hostile_interpreter_sends_is_bounded_for_all_who_ask(own_server, sends):
    """Forty clients at once, each fed by a guest that plays the interpreter: the server keeps what one sandbox may have, and serves others."""
    server = own_server()
    sandbox, other = server.client.create(), server.client.create()
    path = f"{TOP}/sandboxes/{sandbox.id}"
    context = server.client.post(f"{path}/contexts", {}).json["id"]
    player = Records(server.client, "POST", f"{path}/code", {"code": PLAYER.replace("SENDS", sends), "context": context}, accept=NDJSON)
    assert player.next().event == "started"
    run(server.client, other, "1")
    with open(f"/proc/{server.pid}/clear_refs", "w") as file:
        file.write("5")
    before = peak_kib(server)

    def ask(i):
        answer = server.client.post(f"{path}/code", {"code": "1", "context": context, "timeoutMs": 2000})
        return answer.json["error"]["name"] if answer.status == 200 and "error" in answer.json else answer.status
    told = together(*[lambda i=i: ask(i) for i in range(40)])
    assert set(told) <= {"OutputLimit", "TimeoutError"}, told
    assert peak_kib(server) - before < 260 << 10, f"{(peak_kib(server) - before) >> 10} MiB"
    assert value(run(server.client, other, "6 * 7")) == "42"
    player.raw.close()
    server.end()
