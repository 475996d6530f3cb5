// SPDX-License-Identifier: Apache-2.0
// The stock code interpreter: cells, results, contexts.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { NotFoundError, Sandbox, SandboxError, TimeoutError } from '@e2b/code-interpreter'

describe('the code interpreter', () => {
  let sandbox
  before(async () => { sandbox = await Sandbox.create({ timeoutMs: 600_000 }) })
  after(async () => { await sandbox.kill() })

  it('has the value of the last expression and keeps what was defined', async () => {
    const first = await sandbox.runCode('x = 1\nx')
    assert.equal(first.text, '1')
    assert.equal(first.results[0].isMainResult, true)
    const second = await sandbox.runCode('x += 1; x')
    assert.equal(second.text, '2')
    assert.equal(second.executionCount, first.executionCount + 1)
    assert.equal((await sandbox.runCode('"text"')).text, 'text')
  })

  it('streams what is written, and tells results and errors', async () => {
    const seen = { out: [], err: [], results: [], errors: [] }
    const told = await sandbox.runCode('import sys\nprint("one")\nprint("two", file=sys.stderr)\ndisplay(7)\n1/0', {
      onStdout: (message) => seen.out.push(message.line),
      onStderr: (message) => seen.err.push(message.line),
      onResult: (result) => seen.results.push(result.text),
      onError: (error) => seen.errors.push(error.name),
    })
    assert.equal(seen.out.join(''), 'one\n')
    assert.equal(seen.err.join(''), 'two\n')
    assert.deepEqual(seen.results, ['7'])
    assert.deepEqual(seen.errors, ['ZeroDivisionError'])
    assert.deepEqual(told.logs.stdout.join(''), 'one\n')
    assert.equal(told.error.value, 'division by zero')
    assert.match(told.error.traceback, /1\/0/)
  })

  it('has rich results', async () => {
    const code = 'class A:\n  def _repr_html_(self): return "<b>x</b>"\n  def _repr_png_(self): return b"png"\n  def _repr_markdown_(self): return "*x*"\nA()'
    const result = (await sandbox.runCode(code)).results[0]
    assert.equal(result.html, '<b>x</b>')
    assert.equal(result.png, 'cG5n')
    assert.equal(result.markdown, '*x*')
    assert.deepEqual((await sandbox.runCode('{"a": [1]}')).results[0].json, { a: [1] })
    assert.ok([...result.formats()].includes('html'))
  })

  it('gives variables to one run', async () => {
    assert.equal((await sandbox.runCode('import os; os.environ["A"]', { envs: { A: 'b' } })).text, 'b')
    assert.equal((await sandbox.runCode('os.environ.get("A")')).text, undefined)
  })

  it('runs where and as whom commands run', async () => {
    assert.equal((await sandbox.runCode('import os; os.getcwd()')).text, '/home/user')
    assert.equal((await sandbox.runCode('os.getuid()')).text, '1000')
    await sandbox.files.write('data.txt', 'from outside')
    assert.equal((await sandbox.runCode('open("data.txt").read()')).text, 'from outside')
  })

  it('has contexts that are apart', async () => {
    const context = await sandbox.createCodeContext({ cwd: '/tmp' })
    assert.equal(context.language, 'python')
    assert.equal(context.cwd, '/tmp')
    assert.equal((await sandbox.runCode('import os; y = 1; os.getcwd()', { context })).text, '/tmp')
    assert.equal((await sandbox.runCode('y')).error.name, 'NameError')
    assert.ok((await sandbox.listCodeContexts()).some((one) => one.id === context.id))
    await sandbox.restartCodeContext(context)
    assert.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
    await sandbox.removeCodeContext(context)
    await assert.rejects(sandbox.runCode('1', { context }), NotFoundError)
    await assert.rejects(sandbox.removeCodeContext(context), NotFoundError)
  })

  it('runs bash', async () => {
    await sandbox.runCode('cd /tmp; B=5', { language: 'bash' })
    assert.equal((await sandbox.runCode('pwd; echo $B', { language: 'bash' })).logs.stdout.join(''), '/tmp\n5\n')
  })

  it('interrupts what takes too long, and goes on', async () => {
    await sandbox.runCode('kept = 3')
    await assert.rejects(sandbox.runCode('while True: pass', { timeoutMs: 1_000 }), TimeoutError)
    assert.equal((await sandbox.runCode('kept')).text, '3')
  })

  it('says why an interpreter has ended', async () => {
    const told = await sandbox.runCode('import os; os._exit(3)')
    assert.match(told.error.value, /exit code 3/)
    assert.equal((await sandbox.runCode('1 + 1')).text, '2')
  })

  it('refuses what cannot be', async () => {
    await assert.rejects(sandbox.runCode('1', { language: 'cobol' }), SandboxError)
    const stranger = await fetch(`${process.env.E2B_API_URL}/execute`, {
      method: 'POST', headers: { 'Content-Type': 'application/json', 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': '49999' },
      body: JSON.stringify({ code: '1' }),
    })
    assert.equal(stranger.status, 401)
  })

  it('tells which language is not there, and how it comes', async () => {
    const told = await sandbox.runCode('1 + 1', { language: 'r' })
    assert.equal(told.error.name, 'NotInstalled')
    assert.match(told.error.value, /no 'R'.*r-base-core/)
  })

  it('knows the lines of notebooks', async () => {
    const told = await sandbox.runCode('%matplotlib inline\n%env NOTE=5\n%cd /tmp\n!echo "$NOTE $PWD"')
    assert.deepEqual(told.logs.stdout.join(''), '5 /tmp\n')
    assert.deepEqual([told.text, told.error], [undefined, undefined])
    assert.equal((await sandbox.runCode('%%bash\nfor i in 1 2; do\n  echo $i\ndone')).logs.stdout.join(''), '1\n2\n')
    assert.equal((await sandbox.runCode('%%time\nx = 3\n%time x + 1')).text, '4')
    assert.equal((await sandbox.runCode('%pip --version')).text, undefined)
    assert.equal((await sandbox.runCode('%nothing of the kind')).error.name, 'SyntaxError')
    assert.equal((await sandbox.runCode('%cd\nimport os; os.getcwd()')).text, '/home/user')
  })

  it('imports what was installed for its user meanwhile', async () => {
    const code = 'import os, site\nplace = site.getusersitepackages() + "/later_installed"\nos.makedirs(place)\nopen(place + "/__init__.py", "w").write("value = 8")'
    assert.equal((await sandbox.runCode('import later_installed')).error.name, 'ModuleNotFoundError')
    await sandbox.runCode(code)
    assert.equal((await sandbox.runCode('import later_installed; later_installed.value')).text, '8')
  })

  it("shows what IPython's display is given", async () => {
    // As IPython is laid out; the runtime of this test has none.
    const files = { 'IPython/__init__.py': '', 'IPython/core/__init__.py': '',
      'IPython/core/display_functions.py': '__all__ = ["display", "clear_output"]\ndef display(*all, **_): print("not ours")\ndef clear_output(wait=False): print("not ours")\n',
      'IPython/display.py': 'from IPython.core.display_functions import *\nclass HTML:\n  def __init__(self, data): self.data = data\n  def _repr_html_(self): return self.data\n' }
    await sandbox.files.writeFiles(Object.entries(files).map(([path, data]) => ({ path, data })))
    const told = await sandbox.runCode('from IPython.display import display, clear_output, HTML\nclear_output()\ndisplay(HTML("<b>x</b>"))\ndisplay({"text/html": "<i>y</i>"}, raw=True)')
    assert.deepEqual(told.results.map((one) => one.html), ['<b>x</b>', '<i>y</i>'])
    assert.deepEqual(told.logs.stdout, [])
  })

  it('survives a pause', async () => {
    await sandbox.runCode('paused = 9')
    await sandbox.pause()
    const same = await Sandbox.connect(sandbox.sandboxId)
    assert.equal((await same.runCode('paused')).text, '9')
  })
})
