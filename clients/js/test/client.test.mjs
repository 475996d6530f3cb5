// SPDX-License-Identifier: Apache-2.0
// The client against a server: what it promises, what it refuses, and that nothing is left running.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Burrow, BurrowError } from '@burrow/sandbox'

const burrow = new Burrow()

async function all(items) {
  const found = []
  for await (const item of items) found.push(item)
  return found
}

async function until(condition, what) {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; ) {
    if (await condition()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail(`waited in vain for ${what}`)
}

describe('sandboxes', () => {
  it('are made, found, paused, forked and ended', async () => {
    const made = await burrow.sandboxes.create({ name: 'first', labels: { of: 'client' }, env: { A: 'b' } })
    assert.equal(made.name, 'first')
    assert.equal((await burrow.sandboxes.get('first')).id, made.id)
    await made.files.write('a.txt', 'kept')
    const other = await made.fork({ name: 'second', labels: { of: 'client' } })
    assert.equal(await other.files.read('a.txt'), 'kept')
    const names = (await all(burrow.sandboxes.list({ selector: 'of=client', limit: 1 }))).map((found) => found.name)
    assert.deepEqual(names.sort(), ['first', 'second'])
    await made.pause()
    assert.equal(made.info.state, 'paused')
    await made.resume()
    assert.notEqual(made.info.state, 'paused')
    assert.equal(await made.kill(), true)
    assert.equal(await made.kill(), false)
    assert.equal(await burrow.sandboxes.kill(other.id), true)
    assert.equal(await burrow.sandboxes.kill(other.id), false)
  })
})

describe('in a sandbox', () => {
  let sandbox
  before(async () => { sandbox = await burrow.sandboxes.create({ env: { FROM: 'sandbox', OVER: 'sandbox' } }) })
  after(async () => { await sandbox.kill() })
  const running = () => burrow.request('GET', `/sandboxes/${sandbox.id}/executions`, { query: { state: 'running' } })

  it('a command has its result, whatever its exit code', async () => {
    const done = await sandbox.exec('echo out; echo err >&2; echo $FROM $OVER; exit 3', { env: { OVER: 'call' } })
    assert.equal(done.exitCode, 3)
    assert.equal(done.stdout, 'out\nsandbox call\n')
    assert.equal(done.stderr, 'err\n')
    assert.equal(done.timedOut, false)
  })

  it('a list is read by no shell', async () => {
    assert.equal((await sandbox.exec(['printf', '%s|', '$HOME', 'a b', '`id`'])).stdout, '$HOME|a b|`id`|')
    const missing = await sandbox.exec(['there-is-none'])
    assert.equal(missing.exitCode, 127)
    assert.match(missing.error, /there-is-none/)
  })

  it('input is given as text or bytes, and outputs are bytes too', async () => {
    assert.equal((await sandbox.exec('tr a-z A-Z', { stdin: 'hällo' })).stdout, 'HäLLO')
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i)
    assert.deepEqual(new Uint8Array((await sandbox.exec(['cat'], { stdin: bytes })).stdoutBytes), bytes)
  })

  it('long output is whole, and bounded where one says so', async () => {
    const long = await sandbox.exec('head -c 3000000 /dev/zero | tr "\\0" x')
    assert.equal(long.stdout, 'x'.repeat(3_000_000))
    assert.equal(long.truncated, false)
    const short = await sandbox.exec('head -c 3000000 /dev/zero', { maxOutputBytes: 1000 })
    assert.equal(short.stdoutBytes.length, 1000)
    assert.equal(short.truncated, true)
  })

  it('what happens comes as it happens', async () => {
    const events = []
    for await (const event of sandbox.exec('echo one; while [ ! -e go ]; do sleep 0.05; done; echo two >&2; exit 4')) {
      events.push(event)
      if (event.type === 'stdout') await sandbox.files.write('go', '') // else it would never end
    }
    assert.deepEqual(events.map((event) => event.type), ['started', 'stdout', 'stderr', 'exit'])
    assert.equal(events[1].text, 'one\n')
    assert.equal(events[3].exitCode, 4)
  })

  it('a limit ends it', async () => {
    const done = await sandbox.exec('echo begun; sleep 1000', { timeoutMs: 2000 })
    assert.deepEqual([done.exitCode, done.timedOut, done.stdout], [124, true, 'begun\n'])
  })

  it('a signal aborts it, and nothing stays', async () => {
    const stop = new AbortController()
    const seen = []
    await assert.rejects(async () => {
      for await (const event of sandbox.exec('echo x; sleep 1000', { signal: stop.signal })) {
        seen.push(event.type)
        if (event.type === 'stdout') stop.abort()
      }
    }, { name: 'AbortError' })
    assert.deepEqual(seen, ['started', 'stdout'])
    await until(async () => (await running()).items.length === 0, 'the aborted command to end')
  })

  it('aborted before it has begun, or left in the middle, nothing stays either', async () => {
    const stop = new AbortController()
    const execution = sandbox.exec('sleep 1000', { signal: stop.signal }).result()
    stop.abort(new Error('mine'))
    await assert.rejects(execution, /mine/)
    for await (const event of sandbox.exec('sleep 1000')) if (event.type === 'started') break
    await until(async () => (await running()).items.length === 0, 'both to end')
    await assert.rejects(sandbox.exec('true', { signal: AbortSignal.abort() }).result(), { name: 'AbortError' })
  })

  it('code keeps what it defines', async () => {
    assert.equal((await sandbox.runCode('x = 20')).error, undefined)
    const told = await sandbox.runCode('print("p"); x + 1')
    assert.equal(told.stdout, 'p\n')
    assert.equal(told.results.at(-1).data['text/plain'], '21')
    assert.equal((await sandbox.runCode('1/0')).error.name, 'ZeroDivisionError')
    const types = (await all(sandbox.streamCode('print(1)\n2'))).map((event) => event.type)
    assert.deepEqual(types, ['started', 'stdout', 'result', 'end'])
  })

  it('files are written, read, listed and removed', async () => {
    const bytes = Uint8Array.from({ length: 1 << 16 }, (_, i) => i % 251)
    await sandbox.files.write('deep/er/bin+ é&x', bytes)
    assert.deepEqual(await sandbox.files.readBytes('deep/er/bin+ é&x'), bytes)
    await sandbox.files.write('deep/s', new Blob(['streamed']).stream())
    assert.equal(await sandbox.files.read('deep/s'), 'streamed')
    assert.equal(await new Response(await sandbox.files.stream('deep/s')).text(), 'streamed')
    const found = (await all(sandbox.files.list('deep', { recursive: true, limit: 1 }))).map((entry) => entry.path)
    assert.deepEqual(found.sort(), ['er', 'er/bin+ é&x', 's'])
    await sandbox.files.makeDirectory('m/n')
    assert.equal((await sandbox.files.stat('m/n')).kind, 'directory')
    await sandbox.files.remove('deep', { recursive: true })
    assert.equal(await sandbox.files.exists('deep/s'), false)
    assert.equal(await sandbox.files.exists('m'), true)
  })

  it('snapshots are what others start from', async () => {
    await sandbox.files.write('in-it', 'yes')
    const made = await sandbox.snapshot({ name: 'of-client' })
    assert.equal((await burrow.snapshots.get('of-client')).id, made.id)
    assert.ok((await all(burrow.snapshots.list())).some((found) => found.id === made.id))
    const other = await burrow.sandboxes.create({ snapshot: 'of-client' })
    assert.equal(await other.files.read('in-it'), 'yes')
    await other.kill()
    assert.equal(await burrow.snapshots.delete(made.id), true)
    assert.equal(await burrow.snapshots.delete(made.id), false)
  })

  it('the network policy is told and set', async () => {
    assert.equal((await sandbox.network.get()).enabled, false)
    const set = await sandbox.network.set({ enabled: false, allow: ['example.com:443'] })
    assert.deepEqual(set.allow, ['example.com:443'])
    assert.deepEqual((await sandbox.network.get()).allow, ['example.com:443'])
    assert.equal((await sandbox.network.why('elsewhere.example', 443)).allowed, false)
  })
})

describe('refusals', () => {
  it('have code, status, remedy and the request', async () => {
    await assert.rejects(burrow.sandboxes.get('there-is-none'), (error) => {
      assert.ok(error instanceof BurrowError)
      assert.deepEqual([error.code, error.status], ['not_found', 404])
      assert.match(error.message, /there-is-none/)
      assert.ok(error.remedy && error.requestId)
      return true
    })
    await assert.rejects(burrow.sandboxes.create({ nmae: 'x' }), { code: 'unknown_field', status: 400, field: 'nmae' })
    await assert.rejects(new Burrow({ apiKey: 'brw_wrong' }).sandboxes.get('x'), { status: 401 })
  })

  it('are told before anything is sent where that can be seen', async () => {
    assert.throws(() => new Burrow({ url: 'nowhere' }), { code: 'invalid', field: 'url' })
    assert.throws(() => new Burrow({ apiKey: '' }), { code: 'invalid', field: 'apiKey' })
    await assert.rejects(burrow.sandboxes.get('..'), { code: 'invalid' })
    await assert.rejects(burrow.sandboxes.get('x', { signal: AbortSignal.abort() }), { name: 'AbortError' })
  })

  it('no id or name reaches another route', async () => {
    await assert.rejects(burrow.sandboxes.get('x/../../keys?y'), { code: 'not_found' })
  })

  it('a server that is not there is unreachable, not a refusal', async () => {
    await assert.rejects(new Burrow({ url: 'http://127.0.0.1:1' }).sandboxes.get('x'), { code: 'unreachable', status: 0 })
  })

  it('a stream that breaks off is told as that', async () => {
    const broken = async () => new Response('{"event":"started","data":{"id":"exe_1"}}\n{"event":"std')
    const http = new Burrow({ fetch: async (url, init) => (init.method === 'POST' && url.endsWith('/run') ? broken() : Response.json({ id: 'sbx_1' })) })
    const sandbox = await http.sandboxes.get('x')
    await assert.rejects(sandbox.exec('true').result(), { code: 'broken_stream' })
  })
})

describe('contexts of code', () => {
  let sandbox
  before(async () => { sandbox = await burrow.sandboxes.create() })
  after(async () => { await sandbox.kill() })

  it('keep what code defines, apart from each other, until they are restarted or removed', async () => {
    const [one, two] = [await sandbox.contexts.create({ directory: '/tmp' }), await sandbox.contexts.create({ language: 'python' })]
    assert.deepEqual([one.directory, one.language, one.running], ['/tmp', 'python', true])
    await sandbox.runCode('x = 5', { context: one.id })
    assert.equal((await sandbox.runCode('x', { context: two.id })).error.name, 'NameError')
    assert.equal((await sandbox.runCode('x', { context: one.id })).results[0].data['text/plain'], '5')
    assert.deepEqual((await all(sandbox.contexts.list())).map((found) => found.id).sort(), [one.id, two.id].sort())
    assert.equal((await sandbox.contexts.get(two.id)).id, two.id)
    await sandbox.contexts.restart(one.id)
    assert.equal((await sandbox.runCode('x', { context: one.id })).error.name, 'NameError')
    await sandbox.contexts.remove(two.id)
    await assert.rejects(sandbox.runCode('1', { context: two.id }), { code: 'not_found' })
  })

  it('are interrupted', async () => {
    const { id } = await sandbox.contexts.create()
    const seen = []
    for await (const event of sandbox.streamCode('print(1, flush=True)\nwhile True: pass', { context: id })) {
      seen.push(event.type === 'error' ? event.name : event.type)
      if (event.type === 'stdout') await sandbox.contexts.interrupt(id)
    }
    assert.deepEqual(seen, ['started', 'stdout', 'KeyboardInterrupt', 'end'])
  })

  it('a run that is aborted is interrupted, and the context goes on', async () => {
    const stop = new AbortController()
    const run = sandbox.runCode('y = 1\nwhile True: pass', { signal: stop.signal })
    setTimeout(() => stop.abort(), 500)
    await assert.rejects(run, { name: 'AbortError' })
    assert.equal((await sandbox.runCode('1 + 1')).results[0].data['text/plain'], '2')
  })
})

describe('a signal', () => {
  it('that has gone off already keeps every call from the server, and is the reason told', async () => {
    let asked = 0
    const told = { id: 'sbx_1', items: [] }
    const quiet = new Burrow({ fetch: async () => { asked++; return Response.json(told) } })
    const sandbox = await quiet.sandboxes.get('x')
    asked = 0
    const reason = new Error('mine')
    const gone = { signal: AbortSignal.abort(reason) }
    const calls = {
      'sandboxes.create': () => quiet.sandboxes.create({}, gone), 'sandboxes.get': () => quiet.sandboxes.get('x', gone),
      'sandboxes.list': () => all(quiet.sandboxes.list(gone)), 'sandboxes.kill': () => quiet.sandboxes.kill('x', gone),
      'snapshots.get': () => quiet.snapshots.get('x', gone), 'snapshots.list': () => all(quiet.snapshots.list(gone)), 'snapshots.delete': () => quiet.snapshots.delete('x', gone),
      request: () => quiet.request('GET', '/x', gone),
      exec: () => sandbox.exec('true', gone).result(), 'exec, followed': () => all(sandbox.exec('true', gone)),
      runCode: () => sandbox.runCode('1', gone), streamCode: () => all(sandbox.streamCode('1', gone)),
      refresh: () => sandbox.refresh(gone), pause: () => sandbox.pause(gone), resume: () => sandbox.resume(gone), fork: () => sandbox.fork({}, gone),
      snapshot: () => sandbox.snapshot({}, gone), kill: () => sandbox.kill(gone),
      'files.read': () => sandbox.files.read('x', gone), 'files.readBytes': () => sandbox.files.readBytes('x', gone), 'files.stream': () => sandbox.files.stream('x', gone),
      'files.write': () => sandbox.files.write('x', 'y', gone), 'files.list': () => all(sandbox.files.list('.', gone)), 'files.stat': () => sandbox.files.stat('x', gone),
      'files.exists': () => sandbox.files.exists('x', gone), 'files.makeDirectory': () => sandbox.files.makeDirectory('x', gone), 'files.remove': () => sandbox.files.remove('x', gone),
      'files.readArchive': () => sandbox.files.readArchive('.', gone), 'files.writeArchive': () => sandbox.files.writeArchive('.', new Uint8Array(1), gone),
      'network.get': () => sandbox.network.get(gone), 'network.set': () => sandbox.network.set({}, gone), 'network.change': () => sandbox.network.change({}, gone),
      'network.why': () => sandbox.network.why('x', 1, gone),
      'contexts.create': () => sandbox.contexts.create({}, gone), 'contexts.list': () => all(sandbox.contexts.list(gone)), 'contexts.get': () => sandbox.contexts.get('x', gone),
      'contexts.interrupt': () => sandbox.contexts.interrupt('x', gone), 'contexts.restart': () => sandbox.contexts.restart('x', gone), 'contexts.remove': () => sandbox.contexts.remove('x', gone),
    }
    for (const [name, call] of Object.entries(calls)) await assert.rejects(async () => call(), (problem) => problem === reason, name)
    assert.equal(asked, 0)
    // Every method of every part is in the list above.
    for (const [part, of] of Object.entries({ 'sandboxes.': quiet.sandboxes, 'snapshots.': quiet.snapshots, 'files.': sandbox.files, 'network.': sandbox.network, 'contexts.': sandbox.contexts, '': sandbox })) {
      const names = new Set([...Object.keys(of), ...Object.getOwnPropertyNames(Object.getPrototypeOf(of))])
      for (const name of names) {
        const isCall = typeof Object.getOwnPropertyDescriptor(Object.getPrototypeOf(of), name)?.value === 'function' || typeof Object.getOwnPropertyDescriptor(of, name)?.value === 'function'
        if (isCall && name !== 'constructor' && !(name in Object.prototype)) assert.ok(calls[part + name], `${part}${name} is not tried`)
      }
    }
  })
})
