# SPDX-License-Identifier: Apache-2.0
# Runs Python, or a shell, for one context, inside the box: a request a connection, answered by lines of JSON. See
# docs/internals/code.md.
# usage: python3 - NAME [bash | r | java | waiting] <THIS     (listens on the abstract socket NAME)
import sys, os, socket, select, json, ast, signal, _thread, builtins


class Driver:
    def __init__(self):
        self.count = 0
        self.connection = None  # of the one who waits for the code that runs
        self.lock = _thread.allocate_lock()  # of the connection and of the pipes
        self.space = {"__name__": "__main__", "__builtins__": builtins, "display": self.display}
        self.loop = None
        self.is_running = False
        self.pipes = {}
        self.wakes, self.waker = os.pipe()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for name, fd in (("stdout", 1), ("stderr", 2)):
            out, into = os.pipe()
            os.dup2(into, fd)
            os.close(into)
            os.set_blocking(out, False)
            self.pipes[out] = [name, b""]
        sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        module = type(sys)("__main__")
        module.__dict__.update(self.space)
        self.space = module.__dict__
        sys.modules["__main__"] = module
        sys.argv = [""]
        os.environ.setdefault("MPLBACKEND", "module://_burrow_figures")
        sys.meta_path[:0] = [FigureFinder(self), DisplayFinder(self)]
        self.add_user_packages()

    # ---- what goes out ----

    def put(self, message):
        """The caller has the lock."""
        if self.connection is None:
            return
        try:
            self.connection.sendall(json.dumps(message, default=str, ensure_ascii=True).encode() + b"\n")
        except OSError:
            self.connection = None

    def send(self, message):
        with self.lock:
            self.drain()
            self.put(message)

    def drain(self, is_last=False):
        """What was written so far, by this process or its children. The caller has the lock."""
        for fd, pipe in self.pipes.items():
            while True:
                try:
                    data = os.read(fd, 65536)
                except BlockingIOError:
                    break
                if not data:
                    break
                data, pipe[1] = pipe[1] + data, b""
                data, pipe[1] = whole(data)
                if data:
                    self.put({"type": pipe[0], "text": data.decode("utf-8", "replace")})
            if is_last and pipe[1]:
                self.put({"type": pipe[0], "text": pipe[1].decode("utf-8", "replace")})
                pipe[1] = b""

    def listen(self):
        """A thread: output as it comes, and a client that goes."""
        hang_up = select.POLLRDHUP | select.POLLHUP | select.POLLERR
        while True:
            poll = select.poll()
            for fd in self.pipes:
                poll.register(fd, select.POLLIN)
            poll.register(self.wakes, select.POLLIN)
            connection = self.connection
            if connection is not None:
                try:
                    poll.register(connection.fileno(), hang_up)
                except ValueError:
                    connection = None
            has_output = False
            for fd, events in poll.poll():
                if fd == self.wakes:
                    os.read(fd, 4096)
                elif fd in self.pipes:
                    has_output = True
                elif connection is not None and connection is self.connection and events & hang_up:
                    with self.lock:
                        if self.connection is connection:
                            self.connection = None
                            if self.is_running:
                                os.kill(os.getpid(), signal.SIGINT)
            if has_output:
                with self.lock:
                    self.drain()

    # ---- values ----

    def display(self, *values, raw=False, **_):
        for value in values:
            data = {"data": {str(kind): encoded(one) for kind, one in value.items()}} if raw and isinstance(value, dict) else bundle(value)
            self.send({"type": "result", "main": False, **data})

    def add_user_packages(self):
        """Also where nothing is yet: what a cell installs for its user, the next one imports."""
        import site
        if site.ENABLE_USER_SITE and site.getusersitepackages() not in sys.path:
            at = next((i for i, one in enumerate(sys.path) if one.endswith("-packages")), len(sys.path))
            sys.path.insert(at, site.getusersitepackages())

    def show_figures(self):
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None or not hasattr(pyplot, "get_fignums"):
            return
        try:
            numbers = pyplot.get_fignums()
        except Exception:
            return
        for number in numbers:
            figure = pyplot.figure(number)
            if figure.get_axes() or figure.texts or figure.images:
                self.send({"type": "result", "main": False, **bundle(figure)})
            pyplot.close(figure)

    # ---- code ----

    def compile(self, code, name):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        try:
            tree = compile(code, name, "exec", flags | ast.PyCF_ONLY_AST)
        except SyntaxError as error:
            other = with_shell_lines(code)
            if other == code:
                raise error
            tree = compile(other, name, "exec", flags | ast.PyCF_ONLY_AST)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
            last = ast.Expression(tree.body.pop().value)
        parts = []
        if tree.body:
            parts.append((compile(tree, name, "exec", flags), False))
        if last is not None:
            parts.append((compile(last, name, "eval", flags), True))
        return parts

    def run_part(self, part):
        if not part.co_flags & 0x80:  # CO_COROUTINE: it awaits
            return eval(part, self.space)
        import asyncio
        if self.loop is None:
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(eval(part, self.space))

    def execute(self, code):
        name = f"<cell {self.count}>"
        import linecache
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        for part, is_value in self.compile(code, name):
            value = self.run_part(part)
            if is_value and value is not None:
                self.space["_"] = value
                sys.stdout.flush()
                if not is_shown_later(value):
                    self.send({"type": "result", "main": True, **bundle(value)})
        self.show_figures()

    def run(self, request):
        code = request["code"]
        changed = {}
        for line in request.get("env", "").split("\0"):
            name, is_pair, value = line.partition("=")
            if is_pair:
                changed[name] = os.environ.get(name)
                os.environ[name] = value
        self.count += 1
        self.send({"type": "started", "count": self.count})
        sys.path_importer_cache.clear()  # of what was installed since
        with self.lock:
            self.is_running = self.connection is not None
        try:
            try:
                if self.is_running:
                    self.execute(code)
            finally:
                self.is_running = False
        except BaseException as error:
            self.is_running = False
            self.send(failure(error))
        for name, value in changed.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        with self.lock:
            self.drain(True)
            self.put({"type": "end", "count": self.count})

    def serve(self, server):
        _thread.start_new_thread(self.listen, ())
        while True:
            try:
                connection, _ = server.accept()
                request = read_request(connection)
                if request is None:
                    connection.close()
                    continue
                with self.lock:
                    self.drain(True)  # what came in between is nobody's
                    self.connection = connection
                os.write(self.waker, b"x")
                self.run(request)
                with self.lock:
                    self.connection = None
                try:
                    connection.shutdown(socket.SHUT_RDWR)  # the listener may be holding it
                except OSError:
                    pass
                connection.close()
            except KeyboardInterrupt:  # came a moment late
                self.is_running = False


class ChildDriver(Driver):
    """One child for all requests, which keeps what they define. It reads code from descriptor 4 and tells on 3 what became of it."""

    PROGRAM = ""  # without which there is no such language

    def __init__(self):
        super().__init__()
        self.child = None
        self.env = ""

    @classmethod
    def find(cls):
        return next((one for one in (place + "/" + cls.PROGRAM for place in os.environ.get("PATH", "").split(":")) if os.access(one, os.X_OK)), None)

    def run(self, request):
        self.env = request.get("env", "")
        super().run(request)

    def start(self, command):
        import subprocess
        ends, ended = os.pipe()
        code, codes = os.pipe()
        for fd in (ended, code):
            if fd in (3, 4):
                raise RuntimeError("descriptors are taken")

        def place():
            os.dup2(ended, 3)
            os.dup2(code, 4)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=place, pass_fds=(3, 4), start_new_session=True)
        os.close(ended)
        os.close(code)
        self.ends, self.codes = ends, codes

    def stop(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except OSError:
            pass
        self.child.wait()
        os.close(self.ends)
        os.close(self.codes)
        self.child = None

    def write(self, data):
        while data:  # a pipe's worth at a time, as the child reads
            data = data[os.write(self.codes, data):]


class ShellDriver(ChildDriver):
    """One shell for all requests, so that its directory, variables and functions stay."""

    PROGRAM = "bash"
    LOOP = "trap : INT; while IFS= read -r -d '' code <&4; do eval \"$code\" 4<&- 3>&-; echo $? >&3; done"

    def wait_for_status(self, seconds):
        ready, _, _ = select.select([self.ends], [], [], seconds)
        return os.read(self.ends, 64) if ready else None

    def execute(self, code):
        if self.child is None:
            self.start(["bash", "-c", self.LOOP, "bash"])
        try:
            self.write(code.replace("\0", "").encode("utf-8", "surrogateescape") + b"\0")
            status = self.wait_for_status(None)
        except KeyboardInterrupt:
            os.killpg(self.child.pid, signal.SIGINT)
            if self.wait_for_status(1) is None:
                self.stop()
            raise
        if status:
            status = int(status)
        else:
            status = self.child.wait()  # the code has ended its shell: the next one is new
            self.stop()
        if status != 0:
            self.send({"type": "error", "name": "ExitStatus", "value": str(status), "traceback": ""})


class TellingDriver(ChildDriver):
    """A child that is sent variables and code, each behind its length in ten digits, and answers with pieces: KIND SIZE, a line break, so many bytes."""

    LANGUAGE = ""
    PATIENCE = 2  # seconds until one that was interrupted is ended

    def more(self, seconds):
        """Reads on. False: it has gone, or says nothing."""
        if not select.select([self.ends], [], [], seconds)[0]:
            return False
        data = os.read(self.ends, 65536)
        self.said += data
        return bool(data)

    def piece(self, seconds):
        while b"\n" not in self.said:
            if not self.more(seconds):
                return None
        head, _, rest = self.said.partition(b"\n")
        kind, _, size = head.partition(b" ")
        if not size.isdigit():
            return None
        while len(self.said) < len(head) + 1 + int(size):
            if not self.more(seconds):
                return None
        data = self.said[len(head) + 1:len(head) + 1 + int(size)]
        self.said = self.said[len(head) + 1 + int(size):]
        return kind.decode(), data.decode("utf-8", "replace")

    def tell(self, seconds):
        """Passes on what is said, up to the end of this run. False: there is no end."""
        parts = []
        while True:
            told = self.piece(seconds)
            if told is None or told[0] == "end":
                return told is not None
            if told[0] == "value":
                self.send({"type": "result", "main": True, "data": {"text/plain": told[1]}})
            elif told[0] == "figure":
                import base64
                with open(told[1], "rb") as file:
                    self.send({"type": "result", "main": False, "data": {"image/png": base64.b64encode(file.read()).decode(), "text/plain": "<a plot>"}})
                os.unlink(told[1])
            elif told[0] == "error":
                self.send({"type": "error", "name": (parts + [""] * 2)[0], "value": (parts + [""] * 2)[1], "traceback": told[1]})
                parts = []
            else:
                parts.append(told[1])  # name, then value, of an error

    def interrupt(self):
        os.killpg(self.child.pid, signal.SIGINT)

    def execute(self, code):
        if self.child is None:
            self.start(self.command())
            self.said = b""
        code = code.replace("\0", "").encode("utf-8", "replace")
        env = self.env.encode("utf-8", "surrogateescape")
        try:
            self.write(b"%010d%s%010d%s" % (len(env), env, len(code), code))
            has_ended = not self.tell(None)
        except BrokenPipeError:
            has_ended = True
        except KeyboardInterrupt:
            self.interrupt()
            if not self.tell(self.PATIENCE):
                self.stop()
            raise
        if has_ended:
            status = self.child.wait()
            self.stop()
            why = f"has ended with exit code {status}" if status >= 0 else f"was killed by signal {-status}" + (
                ", as the kernel does when a sandbox's memory is used up" if status == -signal.SIGKILL else "")
            self.send({"type": "error", "name": "ContextEnded", "value": f"the {self.LANGUAGE} interpreter {why}; the next run starts a new one", "traceback": ""})


class RDriver(TellingDriver):
    PROGRAM = "Rscript"
    LANGUAGE = "r"
    SCRIPT = r"""
.burrow <- new.env()
local({
  input <- file("/dev/fd/4", "rb", raw = TRUE)
  output <- file("/dev/fd/3", "wb", raw = TRUE)
  say <- function(kind, text) {
    bytes <- charToRaw(enc2utf8(paste(text, collapse = "\n")))
    writeBin(charToRaw(sprintf("%s %d\n", kind, length(bytes))), output)
    writeBin(bytes, output)
    flush(output)
  }
  block <- function() {
    head <- readBin(input, "raw", 10)
    if (length(head) < 10) quit(save = "no")
    readBin(input, "raw", as.integer(rawToChar(head)))
  }
  set <- function(raw) {
    ends <- which(raw == 0)
    from <- c(1, ends + 1)[seq_along(ends)]
    before <- list()
    for (i in seq_along(ends)) {
      pair <- rawToChar(raw[from[i]:(ends[i] - 1)])
      at <- regexpr("=", pair, fixed = TRUE)
      name <- substr(pair, 1, at - 1)
      before[[name]] <- Sys.getenv(name, unset = NA)
      do.call(Sys.setenv, structure(list(substring(pair, at + 1)), names = name))
    }
    before
  }
  plots <- tempfile("plots")
  dir.create(plots)
  if (capabilities("cairo"))
    options(device = function(...) grDevices::png(file.path(plots, "%03d.png"), type = "cairo", width = 800, height = 600))
  fail <- function(e, calls) {
    say("name", class(e)[1])
    say("text", conditionMessage(e))
    where <- if (is.null(conditionCall(e))) "Error: " else paste0("Error in ", paste(deparse(conditionCall(e)), collapse = " "), " : ")
    say("error", c(paste0(where, conditionMessage(e)), vapply(calls, function(one) paste(deparse(one), collapse = " "), "")))
  }
  run <- function(code) {
    calls <- list()
    tryCatch(withCallingHandlers({
      all <- parse(text = code, keep.source = FALSE)
      for (i in seq_along(all)) {
        got <- withVisible(eval(all[[i]], globalenv()))
        if (!got$visible) next
        if (i < length(all)) print(got$value)
        else if (!is.null(got$value)) {
          shown <- if (is.character(got$value) && length(got$value) == 1 && is.null(attributes(got$value))) got$value else utils::capture.output(print(got$value))
          say("value", shown)
        }
      }
    }, error = function(e) {
      all <- sys.calls()
      mine <- which(vapply(all, function(one) identical(one, quote(eval(all[[i]], globalenv()))), TRUE))
      theirs <- if (length(mine)) all[-seq_len(max(mine))] else list()
      calls <<- Filter(function(one) !deparse(one[[1]])[1] %in% c(".handleSimpleError", "h", "stop"), theirs)
    }, warning = function(w) {
      message("Warning message:\n", conditionMessage(w))
      invokeRestart("muffleWarning")
    }), error = function(e) fail(e, calls), interrupt = function(e) { say("name", "Interrupted"); say("text", "interrupted"); say("error", "") })
    while (grDevices::dev.cur() > 1) grDevices::dev.off()
    for (one in list.files(plots, full.names = TRUE)) say("figure", one)
  }
  repeat {
    before <- set(block())
    code <- rawToChar(block())
    Encoding(code) <- "UTF-8"
    run(code)
    for (name in names(before)) if (is.na(before[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, structure(list(before[[name]]), names = name))
    flush(stdout())
    say("end", "")
  }
}, envir = .burrow)
"""

    def command(self):
        return [self.find(), "--no-save", "--no-restore", "-e", self.SCRIPT]


class JavaDriver(TellingDriver):
    PROGRAM = "jshell"
    LANGUAGE = "java"
    PATIENCE = 10
    SCRIPT = r"""
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import jdk.jshell.*;

public class Cell {
    static OutputStream output;
    static JShell shell;
    static volatile boolean isInterrupted;

    static void say(String kind, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        output.write((kind + " " + bytes.length + "\n").getBytes(StandardCharsets.UTF_8));
        output.write(bytes);
        output.flush();
    }

    static byte[] block(InputStream input) throws IOException {
        byte[] head = input.readNBytes(10);
        if (head.length < 10) System.exit(0);
        return input.readNBytes(Integer.parseInt(new String(head, StandardCharsets.UTF_8)));
    }

    static void fail(String name, String text, String trace) throws IOException {
        say("name", name);
        say("text", text == null ? "" : text);
        say("error", trace);
    }

    static String plain(String value) {
        if (value.length() < 2 || value.charAt(0) != '"' || !value.endsWith("\"")) return value;
        return value.substring(1, value.length() - 1).translateEscapes();
    }

    static boolean judge(SnippetEvent event, boolean isLast) throws IOException {
        Snippet snippet = event.snippet();
        if (event.status() == Snippet.Status.REJECTED) {
            StringBuilder text = new StringBuilder();
            shell.diagnostics(snippet).forEach(one -> text.append(text.length() > 0 ? "\n" : "").append(one.getMessage(Locale.ENGLISH)));
            fail("CompileError", text.toString(), text + "\n" + snippet.source());
            return false;
        }
        if (event.exception() instanceof EvalException) {
            EvalException thrown = (EvalException) event.exception();
            StringBuilder trace = new StringBuilder(thrown.getExceptionClassName() + ": " + thrown.getMessage());
            for (StackTraceElement one : thrown.getStackTrace()) trace.append("\n\tat ").append(one.getMethodName()).append(" (line ").append(one.getLineNumber()).append(")");
            String name = thrown.getExceptionClassName();
            fail(name.substring(name.lastIndexOf('.') + 1), thrown.getMessage(), trace.toString());
            return false;
        }
        if (event.exception() != null) {
            fail("UnresolvedReference", event.exception().getMessage(), snippet.source());
            return false;
        }
        boolean isValue = snippet.kind() == Snippet.Kind.EXPRESSION && snippet.subKind() != Snippet.SubKind.ASSIGNMENT_SUBKIND
            || snippet.subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
        if (isLast && isValue && event.value() != null && !event.value().isEmpty()) say("value", plain(event.value()));
        return true;
    }

    static void run(String code) throws IOException {
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        for (String rest = code; !rest.isBlank();) {
            SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(rest);
            String source = info.source() == null || info.completeness() == SourceCodeAnalysis.Completeness.DEFINITELY_INCOMPLETE ? rest : info.source();
            rest = source == rest ? "" : info.remaining();
            for (SnippetEvent event : shell.eval(source)) {
                if (isInterrupted) { fail("Interrupted", "interrupted", ""); return; }
                if (event.causeSnippet() == null && !judge(event, rest.isBlank())) return;
            }
        }
    }

    public static void main(String[] words) throws Exception {
        output = new FileOutputStream("/dev/fd/3");
        InputStream input = new BufferedInputStream(new FileInputStream("/dev/fd/4"));
        shell = JShell.builder().out(System.out).err(System.err).in(InputStream.nullInputStream()).build();
        for (String one : List.of("java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*", "java.util.concurrent.*", "java.util.function.*", "java.util.stream.*"))
            shell.eval("import " + one + ";");
        shell.onShutdown(gone -> System.exit(1));
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> { isInterrupted = true; shell.stop(); });
        for (;;) {
            byte[] env = block(input);
            String code = new String(block(input), StandardCharsets.UTF_8);
            isInterrupted = false;
            if (env.length > 0) fail("Unsupported", "a running Java machine cannot have other variables: give them to the sandbox", "");
            else run(code);
            System.out.flush();
            say("end", "");
        }
    }
}
"""

    @classmethod
    def find(cls):
        import glob
        return next((one for one in [*sorted(glob.glob("/usr/lib/jvm/*/bin/jshell")), super().find()] if one and os.access(one, os.X_OK)), None)

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)  # the machine that runs the code, which is another process, would end

    def command(self):
        import tempfile
        place = tempfile.mkdtemp(prefix="burrow-java-")
        with open(place + "/Cell.java", "w") as file:
            file.write(self.SCRIPT)
        program = os.path.join(os.path.dirname(os.path.realpath(self.find())), "java")
        return [program, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "--add-modules", "jdk.jshell,jdk.unsupported", place + "/Cell.java"]


def whole(data):
    """Bytes up to the last whole character, and the rest."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data[:-back], data[-back:]) if need > back else (data, b"")
        if byte < 0x80:
            break
    return data, b""


def read_request(connection):
    """NAME SIZE and so many bytes, line by line, up to an empty line."""
    file = connection.makefile("rb")
    request = {}
    while True:
        head = file.readline(256)
        if head == b"\n":
            return request
        if not head.endswith(b"\n"):
            return None
        name, _, size = head.decode().partition(" ")
        if not size.strip().isdigit():
            return None
        data = file.read(int(size))
        if len(data) != int(size) or file.read(1) != b"\n":
            return None
        request[name] = data.decode("utf-8", "surrogateescape")


NO_MAGIC = ("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "capture")  # what it would change is so already, or is nothing here


def shell(command):
    return f"__import__('subprocess').run([__import__('shutil').which('bash') or 'sh', '-c', {command!r}], check=False) and None"


def magic(name, rest):
    """What a line that begins with '%' means; None: it is nothing that is known here."""
    if name == "pip":
        return shell(f"python3 -m pip {rest}")
    if name in ("time", "timeit"):
        return rest or "pass"
    if name == "cd":
        return f"__import__('os').chdir(__import__('os').path.expanduser({rest or '~'!r}))"
    if name == "env" and rest:
        key, _, value = rest.partition("=") if "=" in rest else rest.partition(" ")
        return f"__import__('os').environ.__setitem__({key.strip()!r}, {value.strip()!r})"
    return "pass" if name in NO_MAGIC else None


def lines_of(code):
    """With all that a text, a bracket or a backslash makes a part of a line. What is for the shell is one line, whatever quotes it has."""
    import re
    piece = re.compile(r"""#[^\n]*|("{3}|'{3})(?:\\.|.)*?(?:\1|\Z)|(["'])(?:\\.|(?!\2)[^\\\n])*\2?|\\.|.""", re.DOTALL)
    at = 0
    while at < len(code):
        start, depth = at, 0
        special = re.compile(r"[ \t\f]*[!%].*\n?").match(code, start)
        if special:
            at = special.end()
        while at < len(code) and not special:
            found = piece.match(code, at)[0]
            at += len(found)
            depth = depth + 1 if found in "([{" else max(depth - 1, 0) if found in ")]}" else depth
            if found == "\n" and depth == 0:
                break
        yield code[start:at]


def with_shell_lines(code):
    """Lines that begin with '!' are for the shell, those with '%' what they are in a notebook."""
    first, _, rest = code.lstrip().partition("\n")
    if first.strip() in ("%%bash", "%%sh"):
        return shell(rest)
    lines = []
    for line in lines_of(code.replace("\r\n", "\n")):
        bare = line.strip()
        start = line[:len(line) - len(line.lstrip())]
        name, _, more = bare.lstrip("%").partition(" ")
        other = shell(bare[1:]) if bare.startswith("!") else magic(name.strip(), more.strip()) if bare.startswith("%") else None
        lines.append(line if other is None else start + other + "\n")
    return "".join(lines)


def failure(error):
    import traceback
    trace = error.__traceback__
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith("<cell "):
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:
        text = ""
    try:
        value = str(error)
    except Exception:
        value = ""
    return {"type": "error", "name": type(error).__name__, "value": value, "traceback": text}


# ---- what a value looks like ----

METHODS = (("text/html", "_repr_html_"), ("text/markdown", "_repr_markdown_"), ("image/svg+xml", "_repr_svg_"), ("image/png", "_repr_png_"),
           ("image/jpeg", "_repr_jpeg_"), ("application/pdf", "_repr_pdf_"), ("text/latex", "_repr_latex_"), ("application/json", "_repr_json_"),
           ("application/javascript", "_repr_javascript_"))


def encoded(value):
    if isinstance(value, (bytes, bytearray)):
        import base64
        return base64.b64encode(value).decode()
    return value


def bundle(value):
    data = {}
    module = type(value).__module__ or ""
    if module.startswith("matplotlib.") and hasattr(value, "savefig"):
        return figure_bundle(value)
    whole_bundle = getattr(type(value), "_repr_mimebundle_", None)
    if whole_bundle is not None:
        try:
            found = value._repr_mimebundle_(include=None, exclude=None)
            found = found[0] if isinstance(found, tuple) else found
            data.update({str(kind): encoded(one) for kind, one in (found or {}).items()})
        except Exception:
            pass
    if not isinstance(value, type):
        for kind, method in METHODS:
            function = getattr(value, method, None)
            if kind in data or not callable(function):
                continue
            try:
                one = function()
            except Exception:
                continue
            one = one[0] if isinstance(one, tuple) and one else one
            if one is not None:
                data[kind] = encoded(one)
    if "text/plain" not in data:
        try:
            data["text/plain"] = value if isinstance(value, str) else repr(value)
        except Exception as error:
            data["text/plain"] = f"<{type(value).__name__} whose repr failed: {error}>"
    told = {"data": data}
    if module.startswith("pandas.") and type(value).__name__ == "DataFrame":
        try:
            told["table"] = json.loads(value.head(10000).to_json(orient="split", date_format="iso"))
        except Exception:
            pass
    if isinstance(value, (dict, list)) and "application/json" not in data:
        try:
            data["application/json"] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            pass
    return told


def is_shown_later(value):
    """What plotting functions return is noise in front of the figure."""
    module = type(value).__module__ or ""
    if isinstance(value, dict) and "matplotlib.pyplot" in sys.modules and set(value) >= {"whiskers", "caps", "boxes"}:
        return True
    if isinstance(value, (list, tuple)) and value:
        return all((type(one).__module__ or "").startswith("matplotlib.") for one in value)
    return module.startswith("matplotlib.") and not hasattr(value, "savefig")


def figure_bundle(figure):
    import io
    file = io.BytesIO()
    figure.savefig(file, format="png", bbox_inches="tight")
    told = {"data": {"text/plain": repr(figure), "image/png": encoded(file.getvalue())}}
    try:
        charts = [chart for chart in map(chart_of, figure.get_axes()) if chart]
    except Exception:
        charts = []
    if len(charts) == 1:
        told["chart"] = charts[0]
    elif charts:
        title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else None
        told["chart"] = {"type": "superchart", "title": title, "elements": charts}
    return told


def plain(value):
    """A number or a text, as JSON has them."""
    if hasattr(value, "item"):
        value = value.item()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def axis_facts(axes, name):
    axis = getattr(axes, name + "axis")
    label = axis.get_label().get_text() or None
    unit = None
    if label and label.endswith(")") and "(" in label:
        unit = label[label.rindex("(") + 1:-1]
    scale = axis.get_scale()
    return {f"{name}_label": label, f"{name}_unit": unit, f"{name}_ticks": [plain(one) for one in axis.get_ticklocs()],
            f"{name}_tick_labels": [one.get_text() for one in axis.get_ticklabels()], f"{name}_scale": "linear" if scale == "linear" else scale}


def chart_of(axes):
    from matplotlib.patches import Wedge, Rectangle, PathPatch
    title = axes.get_title() or None
    wedges = [one for one in axes.patches if isinstance(one, Wedge)]
    if wedges:
        texts = [text.get_text() for text in axes.texts]
        labels = [one.get_label() if not one.get_label().startswith("_") else (texts[i] if i < len(texts) else "") for i, one in enumerate(wedges)]
        return {"type": "pie", "title": title, "elements": [
            {"label": label, "angle": plain(abs(one.theta2 - one.theta1)), "radius": plain(one.r)} for label, one in zip(labels, wedges)]}
    facts = {"title": title, **axis_facts(axes, "x"), **axis_facts(axes, "y")}
    boxes = [one for one in axes.patches if isinstance(one, PathPatch)]
    lines = axes.get_lines()
    box_lines = [one for one in lines if len(one.get_xdata()) == 5]
    if (boxes or box_lines) and len(lines) >= 5 * max(1, len(boxes or box_lines)) and not axes.get_legend():
        return {"type": "box_and_whisker", **facts, "elements": box_elements(axes, boxes or box_lines, lines)}
    containers = [one for one in axes.containers if type(one).__name__ == "BarContainer"]
    if containers:
        return {"type": "bar", **facts, "elements": bar_elements(axes, containers)}
    points = [one for one in axes.collections if type(one).__name__ == "PathCollection"]
    if points and not [one for one in lines if len(one.get_xdata()) > 1]:
        return {"type": "scatter", **facts, "elements": [
            {"label": label_of(one, i), "points": [[plain(x), plain(y)] for x, y in one.get_offsets()]} for i, one in enumerate(points)]}
    if lines:
        return {"type": "line", **facts, "elements": [
            {"label": label_of(one, i), "points": [[plain(x), plain(y)] for x, y in zip(one.get_xdata(), one.get_ydata())]} for i, one in enumerate(lines)]}
    rectangles = [one for one in axes.patches if isinstance(one, Rectangle)]
    if rectangles or axes.images:
        return {"type": "unknown", "title": title, "elements": []}
    return None


def label_of(artist, index):
    label = str(artist.get_label())
    return f"{index}" if label.startswith("_") else label


def bar_elements(axes, containers):
    elements = []
    names = {round(float(at), 6): text.get_text() for at, text in zip(axes.get_xticks(), axes.get_xticklabels())}
    sides = {round(float(at), 6): text.get_text() for at, text in zip(axes.get_yticks(), axes.get_yticklabels())}
    for index, container in enumerate(containers):
        is_flat = getattr(container, "orientation", "vertical") == "horizontal"
        for bar in container:
            middle = bar.get_y() + bar.get_height() / 2 if is_flat else bar.get_x() + bar.get_width() / 2
            label = (sides if is_flat else names).get(round(float(middle), 6))
            elements.append({"label": label or str(plain(middle)), "group": label_of(container, index),
                             "value": plain(bar.get_width() if is_flat else bar.get_height())})
    return elements


def box_elements(axes, boxes, lines):
    labels = [text.get_text() for text in axes.get_xticklabels()]
    elements = []
    for index, box in enumerate(boxes):
        ys = sorted(float(y) for y in (box.get_path().vertices[:, 1] if hasattr(box, "get_path") and not hasattr(box, "get_ydata") else box.get_ydata()) if y == y)
        xs = sorted(float(x) for x in (box.get_path().vertices[:, 0] if not hasattr(box, "get_xdata") else box.get_xdata()))
        low, high = ys[0], ys[-1]
        inside = [one for one in lines if one is not box and len(one.get_xdata()) == 2 and xs[0] - 1e-9 <= min(one.get_xdata()) and max(one.get_xdata()) <= xs[-1] + 1e-9]
        ends = [float(y) for one in inside for y in one.get_ydata()]
        middle = [float(one.get_ydata()[0]) for one in inside if one.get_ydata()[0] == one.get_ydata()[1]
                  and max(one.get_xdata()) - min(one.get_xdata()) > 0.9 * (xs[-1] - xs[0])]
        outliers = [plain(y) for one in lines if one.get_linestyle() == "None" and len(one.get_xdata()) and xs[0] <= one.get_xdata()[0] <= xs[-1] for y in one.get_ydata()]
        elements.append({"label": labels[index] if index < len(labels) else str(index), "min": min(ends + [low]), "first_quartile": low,
                         "median": middle[0] if middle else low, "third_quartile": high, "max": max(ends + [high]), "outliers": outliers})
    return elements


class FigureFinder:
    """The backend that matplotlib is told to use: draws in memory, and shows by sending."""

    def __init__(self, driver):
        self.driver = driver

    def find_spec(self, name, path=None, target=None):
        if name != "_burrow_figures":
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        from matplotlib.backends import backend_agg
        module.FigureCanvas = backend_agg.FigureCanvasAgg
        module.FigureManager = getattr(backend_agg, "FigureManagerBase", None) or __import__("matplotlib.backend_bases", fromlist=["x"]).FigureManagerBase
        driver = self.driver
        module.show = lambda *_, **__: driver.show_figures()


class DisplayFinder:
    """IPython's display, which writes texts where there is no IPython, is ours."""

    def __init__(self, driver):
        self.driver = driver

    def find_spec(self, name, path=None, target=None):
        if name not in ("IPython.core.display_functions", "IPython.core.display"):
            return None
        from importlib.machinery import PathFinder
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                for one, ours in (("display", self.driver.display), ("clear_output", lambda *_, **__: None)):
                    if one in vars(module):  # some modules warn of those they only pass on
                        setattr(module, one, ours)
            spec.loader.exec_module = exec_module
        return spec


# ---- an interpreter that was started before anybody asked for it ----

STARTED_WITH = ("PYTHON", "LD_", "LC_", "GLIBC_", "MALLOC_", "LANG")  # names of variables that only a new process heeds


def first_python(path):
    return next((one for one in (place + "/python3" for place in path.split(":")) if os.access(one, os.X_OK)), None)


def places():
    """Where modules come from, and when something was last put there. Python leaves out what was not there when it started."""
    import site
    times = {}
    for place in {*sys.path, *site.getsitepackages()} - {""}:
        try:
            times[place] = os.stat(place).st_ctime
        except OSError:
            times[place] = 0
    return times


def started_at():
    """By the wall clock, and a little earlier than later: it tells how old files are."""
    import time
    with open("/proc/self/stat") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])
    return time.time() - (time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")) - 0.02


def become_user(text):
    """As PID 1 does it; gives the home and the name."""
    import grp, pwd
    if not text:
        return "/root", "root"
    name, _, group = text.partition(":")
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        if not name.isdigit():
            raise
        entry = None
    uid = entry.pw_uid if entry else int(name)
    gid = int(group) if group.isdigit() else grp.getgrnam(group).gr_gid if group else entry.pw_gid if entry else uid
    others = [one.gr_gid for one in grp.getgrall() if entry.pw_name in one.gr_mem] if entry and not group else []
    os.setgroups(sorted({*others} - {gid}))
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    return (entry.pw_dir, entry.pw_name) if entry else ("/", "")


def become(request, times):
    """The interpreter that was asked for, or an exception: then another one is started."""
    env = dict(one.split("=", 1) for one in request.get("env", "").split("\0") if "=" in one)
    if places() != times:
        raise RuntimeError("packages were installed since")
    home, name = become_user(request.get("user"))
    env.setdefault("HOME", home)
    env.setdefault("USER", name)
    env.setdefault("PATH", os.environ["PATH"])
    now = dict(os.environ)
    for one in {*now, *env}:
        if one.startswith(STARTED_WITH) and now.get(one) != env.get(one):
            raise RuntimeError(one)
    if first_python(now["PATH"]) != first_python(env["PATH"]):
        raise RuntimeError("PATH")
    os.environ.clear()
    os.environ.update(env)
    import site, time
    if site.ENABLE_USER_SITE and env["HOME"] != now["HOME"]:
        sys.path[:] = [one for one in sys.path if one != site.USER_SITE]
        site.USER_BASE = site.USER_SITE = None
        site.addusersitepackages(set(sys.path))
    time.tzset()
    directory = request.get("directory") or home
    os.makedirs(directory, mode=0o755, exist_ok=True)
    os.chdir(directory)


def is_server(connection):
    """Processes of this box have a number here; who comes from outside has none."""
    return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder) == 0


def wait(name):
    """Until the server says which context this is: its listening socket, and the word it would have been started with."""
    import base64, codeop, grp, linecache, pwd, site, time, traceback  # what runs will need
    eval(compile("1 + 1", "<cell 0>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
    times, started = places(), started_at()
    if max(times.values()) >= started:
        times = None  # somebody has the box already, and Python may have looked before that
    door = listener(name)
    while True:
        connection, _ = door.accept()
        request = read_request(connection) if is_server(connection) else None
        if request and "name" in request:
            break
        connection.close()
    door.close()
    try:
        become(request, times)
        if not can(request.get("word")):
            raise RuntimeError("not installed")
        server = listener(request["name"])
    except Exception:
        os._exit(0)  # the server sees its connection close
    connection.sendall(b"y")
    connection.close()
    return server, request.get("word")


def listener(name):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(("\0" + name).ljust(108, "\0"))  # Node fills names up
    server.listen(16)
    return server


DRIVERS = {None: Driver, "bash": ShellDriver, "r": RDriver, "java": JavaDriver}


def can(word):
    kind = DRIVERS[word]
    return kind is Driver or kind.find() is not None


def main(name, word=None):
    if word == "waiting":
        server, word = wait(name)
    elif can(word):
        server = listener(name)
    else:
        os._exit(127)
    DRIVERS[word]().serve(server)


main(*sys.argv[1:])
