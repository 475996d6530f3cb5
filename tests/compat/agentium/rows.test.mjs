// SPDX-License-Identifier: Apache-2.0
// Agentium's interface, rule by rule, against both classes, and against the vendor's class with ours as its remote.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Burrow, BurrowSandbox, createSandboxTools, SandboxAgent } from '@burrow/sandbox'
import { VendorAgent } from './vendor.mjs'

const runtime = 'host:latest' // has node, python3 and git, as the machine that runs this
const config = { runtime, labels: { of: 'rows' } }
const BYTES = Buffer.from(Array.from({ length: 256 }, (_, i) => i)).toString('base64')

async function count() {
  let n = 0
  for await (const each of new Burrow().sandboxes.list({ selector: 'of=rows' })) n += each.id ? 1 : 0
  return n
}

/** Rules of commands and files, which hold through the vendor's class as well. */
function common(make) {
  let agent
  before(async () => {
    agent = make()
    await agent.start()
  })
  after(async () => { await agent.close() })

  it('is in the workspace, where its files are', async () => {
    assert.equal(await agent.readFile('seed/a.txt'), 'seeded')
    assert.deepEqual(await agent.shell('cat seed/a.txt; pwd'), { output: 'seeded/workspace\n', exitCode: 0 })
    assert.equal((await agent.run('import os; print(os.getcwd())', { language: 'python' })).output, '/workspace\n')
  })

  it('a second start does not write the files again', async () => {
    await agent.writeFile('seed/a.txt', 'changed')
    await agent.start()
    assert.equal(await agent.readFile('seed/a.txt'), 'changed')
    await agent.writeFile('seed/a.txt', 'seeded')
  })

  it('a failing command is a value; output has both streams', async () => {
    assert.deepEqual(await agent.shell('echo out; echo err >&2; exit 7'), { output: 'out\nerr\n', exitCode: 7 })
    assert.equal((await agent.shell('there-is-none')).exitCode, 127)
  })

  for (const [language, code, output] of [
    ['python', 'import sys\nx = "$HOME `id` ${A} \\\\ \'\\""\nif x:\n    print(x)\n', '$HOME `id` ${A} \\ \'"\n'],
    ['node', 'const x = `${1 + 1} $HOME \'"`\nfor (const y of [x])\n  console.log(y)\n', '2 $HOME \'"\n'],
    ['node', '-1; console.log("é")', 'é\n'],
    ['shell', 'x=1\nif true; then\n  echo "$x"\nfi\n', '1\n'],
  ])
    it(`${language} gets its code byte for byte: ${JSON.stringify(code.slice(0, 20))}`, async () => {
      assert.deepEqual(await agent.run(code, { language }), { output, exitCode: 0 })
    })

  for (const [language, comment] of [['python', '#'], ['node', '//'], ['shell', '#']])
    it(`${language} gets code that is longer than an argument`, async () => {
      const print = { python: 'print("end")', node: 'console.log("end", typeof require)', shell: 'echo end' }[language]
      const done = await agent.run(`${comment}${'x'.repeat(200_000)}\n${print}\n`, { language })
      assert.deepEqual(done, { output: language === 'node' ? 'end function\n' : 'end\n', exitCode: 0 })
      assert.equal((await agent.shell('ls -A /tmp | grep -c burrow-code')).output, '0\n')
    })

  it('variables of a run hold for that run, over those of the workspace', async () => {
    const show = { language: 'shell', env: { A: 'call', B: 'new' } }
    assert.equal((await agent.run('echo $A $B', show)).output, 'call new\n')
    assert.equal((await agent.run('echo $A $B', { language: 'shell' })).output, 'workspace\n')
  })

  it('the environment of the caller is not passed in', async () => {
    assert.doesNotMatch((await agent.shell('env')).output, /BURROW|README=/)
  })

  it('a limit gives 124, what was printed, and a workspace that goes on', async () => {
    const done = await agent.shell('echo begun; sleep 1000', { timeoutSeconds: 2 })
    assert.deepEqual(done, { output: 'begun\n', exitCode: 124, timedOut: true })
    assert.equal((await agent.shell('sleep 1000', { timeoutSeconds: 0 })).timedOut, true)
    assert.equal((await agent.shell('echo on')).output, 'on\n')
  })

  it('all that the command has started dies with it', async () => {
    const script = '(setsid sleep 98765 &) ; sleep 98765 & (trap "" TERM HUP; exec sleep 98765) & echo ok; sleep 98765'
    assert.equal((await agent.shell(script, { timeoutSeconds: 1 })).timedOut, true)
    const look = 'for p in /proc/[0-9]*/cmdline; do tr "\\0" " " < $p 2>/dev/null | grep -q "^sleep 98765" && echo $p; done; echo done'
    assert.equal((await agent.shell(look)).output, 'done\n')
  })

  it('stdin is empty, and a signal is 128 and its number', async () => {
    assert.deepEqual(await agent.shell('cat; echo read'), { output: 'read\n', exitCode: 0 })
    assert.equal((await agent.shell('kill -TERM $$')).exitCode, 143)
    assert.equal((await agent.run('import os; os.kill(os.getpid(), 9)', { language: 'python' })).exitCode, 137)
  })

  it('a write makes directories and truncates; base64 is exact in and out', async () => {
    await agent.writeFile('deep/er/file', 'long content')
    await agent.writeFile('deep/er/file', 'short')
    assert.equal(await agent.readFile('deep/er/file'), 'short')
    await agent.writeFile('bytes', BYTES, 'base64')
    assert.equal(await agent.readFile('bytes', 'base64'), BYTES)
    assert.equal((await agent.shell('wc -c < bytes')).output.trim(), '256')
    await assert.rejects(agent.writeFile('bad', 'no base64!', 'base64'), { code: 'invalid' })
  })

  it('what is missing, or a directory, reads as null', async () => {
    assert.equal(await agent.readFile('there/is/none'), null)
    assert.equal(await agent.readFile('deep'), null)
    assert.equal(await agent.readFile('deep/er/file/below'), null)
  })

  it('no path leads out of the workspace', async () => {
    for (const path of ['../out', 'a/../../out', '/../out', '..'])
      await assert.rejects(agent.writeFile(path, 'x'), { code: 'invalid', field: 'path' }, path)
    await assert.rejects(agent.readFile('../etc/passwd'), { code: 'invalid' })
    await agent.writeFile('/etc/passwd', 'mine')
    assert.equal((await agent.shell('cat etc/passwd')).output, 'mine')
    await agent.writeFile('/workspace/abs', 'same')
    assert.equal(await agent.readFile('abs'), 'same')
  })

  it('what is no language, limit or text is refused', async () => {
    await assert.rejects(agent.run('x', { language: 'cobol' }), { code: 'invalid', field: 'language' })
    await assert.rejects(agent.run('x', { language: 'constructor' }), { code: 'invalid' })
    await assert.rejects(agent.shell('x', { timeoutSeconds: NaN }), { code: 'invalid' })
    await assert.rejects(agent.shell(undefined), { code: 'invalid' })
  })
}

const workspace = { files: [{ path: 'seed/a.txt', contents: 'seeded' }], env: { A: 'workspace' } }
describe('commands and files of SandboxAgent', () => common(() => new SandboxAgent({ ...config, backend: 'docker', workspace })))
describe('commands and files of BurrowSandbox', () => common(() => new BurrowSandbox({ ...config, workspace })))
describe('BurrowSandbox as the remote of the vendor', () => {
  common(() => new VendorAgent({ backend: 'remote', remote: new BurrowSandbox({ ...config, env: { A: 'workspace' } }), workspace }))

  it('is not asked without one', () => assert.rejects(new VendorAgent({ backend: 'remote' }).start(), /requires `remote`/))
})

for (const [Class, language, mark] of [[SandboxAgent, 'node', { kind: 'sandbox-agent' }], [BurrowSandbox, 'python', { providerId: 'burrow' }]])
  describe(`the life of ${Class.name}`, () => {
    it('is ready between start and close, each of which may come twice', async () => {
      const agent = new Class(config)
      for (const [name, value] of Object.entries(mark)) assert.equal(agent[name], value)
      assert.equal(agent.ready, false)
      assert.throws(() => { 'use strict'; agent.ready = true }, TypeError)
      const calls = [() => agent.shell('true'), () => agent.run('1'), () => agent.writeFile('a', 'b'), () => agent.snapshot(), () => agent.readFile('a')]
      for (const call of calls) await assert.rejects(call(), /not started/)
      await Promise.all([agent.start(), agent.start()])
      await agent.start()
      assert.equal(agent.ready, true)
      assert.equal(await count(), 1)
      assert.deepEqual(await agent.run({ node: 'console.log("by node")', python: 'print("by python")'  }[language]), { output: `by ${language}\n`, exitCode: 0 })
      await agent.close()
      await agent.close()
      assert.equal(agent.ready, false)
      for (const call of calls) await assert.rejects(call(), { code: 'not_started' })
      assert.equal(await count(), 0)
    })

    it('clones after the files, and checks out what is asked for', async () => {
      const maker = new Class(config)
      await maker.start()
      const git = 'git -c user.name=a -c user.email=a@b.invalid -c init.defaultBranch=main'
      const made = await maker.shell(`${git} init -q r && cd r && echo 1 > f && ${git} add f && ${git} commit -qm 1 && ${git} tag first && echo 2 > f && ${git} commit -qam 2 && ${git} bundle create ../b.bundle --all HEAD 2>&1`)
      assert.equal(made.exitCode, 0, made.output)
      const files = [{ path: 'in/b.bundle', contents: await maker.readFile('b.bundle', 'base64'), encoding: 'base64' }]
      await maker.close()
      const gitClones = [{ repo: 'in/b.bundle', path: 'newest' }, { repo: 'in/b.bundle', path: 'old/one', ref: 'first' }]
      const agent = new Class({ ...config, workspace: { files, gitClones } })
      await agent.start()
      assert.equal((await agent.shell('cat newest/f old/one/f')).output, '2\n1\n')
      const saved = JSON.parse(JSON.stringify(await agent.snapshot()))
      assert.ok(saved.files.some((file) => file.path === 'newest/.git/HEAD'))
      await agent.resume(saved) // clones are in it
      assert.equal((await agent.shell('git -C newest status --porcelain; git -C old/one log --oneline | wc -l')).output.trim(), '1')
      await agent.close()
      for (const bad of [{ repo: 'in/b.bundle', path: 'x', ref: 'no-such' }, { repo: '--upload-pack=touch /workspace/pwned', path: 'x' }, { repo: 'none; true', path: 'x' }]) {
        const failing = new Class({ ...config, workspace: { files, gitClones: [bad] } })
        await assert.rejects(failing.start(), { code: 'clone_failed' })
        assert.equal(failing.ready, false)
      }
      const option = new Class({ ...config, workspace: { files, gitClones: [{ repo: 'in/b.bundle', path: 'x', ref: '--help' }] } })
      await assert.rejects(option.start(), { code: 'invalid', field: 'ref' })
      await assert.rejects(new Class({ ...config, workspace: { files, gitClones: [{ repo: 'in/b.bundle', path: '../x' }] } }).start(), { code: 'invalid' })
      assert.equal(await count(), 0)
    })

    it('a snapshot is JSON, and another process goes on from it', async () => {
      const agent = new Class({ ...config, workspace: { env: { KEPT: 'yes' } } })
      await agent.start()
      const long = `${'d'.repeat(120)}/${'f'.repeat(200)}`
      await agent.writeFile('bytes', BYTES, 'base64')
      await agent.writeFile(long, 'far')
      await agent.writeFile('ünï cödé', 'x')
      await agent.shell('echo "#!/bin/sh\necho run" > tool; chmod 755 tool; ln -s tool alias; : > empty; mkfifo pipe; ln bytes hard')
      const before = Date.now()
      const saved = await agent.snapshot()
      await agent.close()
      assert.ok(saved.takenAt >= before && saved.takenAt <= Date.now())
      assert.deepEqual(saved.env, { KEPT: 'yes' })
      assert.deepEqual(saved.files.map((file) => file.path).sort(), ['bytes', 'empty', 'hard', long, 'tool', 'ünï cödé'].sort())
      assert.ok(saved.files.every((file) => file.encoding === 'base64'))
      assert.equal(saved.files.find((file) => file.path === 'hard').contents, BYTES)
      const program = `import { ${Class.name} as Class } from '@burrow/sandbox'
        const agent = new Class(${JSON.stringify(config)})
        await agent.resume(JSON.parse(process.argv[1]))
        const done = await agent.shell('./tool; ./alias; echo $KEPT; cat ${long}; wc -c < empty')
        console.log(JSON.stringify([agent.ready, done, await agent.readFile('bytes', 'base64')]))
        await agent.close()`
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program, JSON.stringify(saved)])
      assert.deepEqual(JSON.parse(stdout), [true, { output: 'run\nrun\nyes\nfar0\n', exitCode: 0 }, BYTES])
      assert.equal(await count(), 0)
    })

    it('takes a plain snapshot of the vendor, and no nonsense', async () => {
      const agent = new Class({ ...config, workspace: { files: [{ path: 'old', contents: 'x' }], env: { OLD: 'x' } } })
      await agent.start()
      for (const bad of [undefined, {}, { files: [{}] }, { files: [{ path: '../x', contents: '' }] }, { files: [{ path: 'x', contents: '!', encoding: 'base64' }] }])
        await assert.rejects(agent.resume(bad), { code: 'invalid' })
      assert.equal(agent.ready, true)
      await agent.resume({ takenAt: 1, files: [{ path: 'd/new', contents: 'bmV3', encoding: 'base64' }, { path: 'text', contents: 'té' }], env: { NEW: 'y' } })
      assert.deepEqual(await agent.shell('cat d/new text; echo; ls; echo "$OLD$NEW"'), { output: 'newté\nd\ntext\ny\n', exitCode: 0 })
      assert.equal(await count(), 1)
      await agent.close()
    })

    it('a signal aborts', async () => {
      const agent = new Class(config)
      await assert.rejects(agent.start({ signal: AbortSignal.abort() }), { name: 'AbortError' })
      assert.equal(agent.ready, false)
      await agent.start()
      await assert.rejects(agent.shell('sleep 1000', { signal: AbortSignal.timeout(200) }), { name: 'TimeoutError' })
      await assert.rejects(agent.snapshot({ signal: AbortSignal.abort() }), { name: 'AbortError' })
      assert.equal((await agent.shell('echo on')).output, 'on\n')
      await agent.close()
    })
  })

describe('tools', () => {
  for (const [name, make] of [
    ['SandboxAgent', async () => { const agent = new SandboxAgent(config); await agent.start(); return [agent, () => agent.close()] }],
    ['Sandbox', async () => { const sandbox = await new Burrow().sandboxes.create(config); return [sandbox, () => sandbox.kill()] }],
  ])
    it(`of a ${name} do what a model asks`, async () => {
      const [sandbox, end] = await make()
      const tools = createSandboxTools(sandbox, { maxOutputCharacters: 1000 })
      const names = ['sandbox_run', 'sandbox_shell', 'sandbox_write_file', 'sandbox_read_file']
      assert.deepEqual(Object.keys(tools.aiSdk), names)
      assert.deepEqual(tools.openai.map((tool) => [tool.type, tool.function.name]), names.map((each) => ['function', each]))
      assert.deepEqual(tools.openaiResponses.map((tool) => tool.name), names)
      assert.deepEqual(tools.anthropic.map((tool) => [tool.name, tool.input_schema.type]), names.map((each) => [each, 'object']))
      for (const tool of Object.values(tools.aiSdk)) {
        assert.equal(tool.inputSchema[Symbol.for('vercel.ai.schema')], true)
        assert.equal(tool.inputSchema.validate({ nonsense: 1 }).success, false)
      }
      assert.equal(await tools.aiSdk.sandbox_write_file.execute({ path: 'a', contents: 'b' }), 'ok')
      assert.equal(await tools.call('sandbox_read_file', '{"path": "a"}'), 'b')
      assert.equal(await tools.call('sandbox_read_file', { path: 'none' }), '[file not found]')
      assert.deepEqual(JSON.parse(await tools.call('sandbox_run', { code: 'console.log(6 * 7)', language: 'node' })), { output: '42\n', exitCode: 0 })
      assert.equal(JSON.parse(await tools.call('sandbox_shell', { command: 'sleep 1000', timeoutSeconds: 0.2 })).timedOut, true)
      assert.match(await tools.call('sandbox_shell', { command: 'seq 10000' }), /characters left out/)
      for (const [tool, given] of [['none', {}], ['sandbox_shell', '{'], ['sandbox_shell', {}], ['sandbox_shell', { command: 1 }], ['sandbox_shell', { command: 'x', y: 1 }], ['sandbox_run', { code: '', language: 'cobol' }]])
        assert.match(await tools.call(tool, given), /^\[error: /)
      await assert.rejects(tools.aiSdk.sandbox_shell.execute({ command: 'sleep 1000' }, { abortSignal: AbortSignal.timeout(200) }), { name: 'TimeoutError' })
      await end()
    })
})
