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
