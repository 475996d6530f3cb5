// SPDX-License-Identifier: Apache-2.0
// The newest stock client: servers in a sandbox, reached by the host that it names and by its headers.
import assert from 'node:assert/strict'
import http from 'node:http'
import { describe, it } from 'node:test'
import { Sandbox } from 'e2b'

const { hostname, port } = new URL(process.env.E2B_SANDBOX_URL)

// As a client that cannot resolve the name: to the server itself, with these headers.
function get(headers) {
  return new Promise((resolve, reject) => {
    http.get({ hostname, port, path: '/hello.txt', headers, agent: false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece) => { text += piece })
      response.on('end', () => resolve({ status: response.statusCode, text }))
      response.on('error', reject)
    }).on('error', reject)
  })
}

async function until(what, condition) {
  const deadline = Date.now() + 60_000
  for (;;) {
    const value = await condition()
    if (value) return value
    assert.ok(Date.now() < deadline, `waited too long for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function withServer(options, fn) {
  const sandbox = await Sandbox.create('base', { timeoutMs: 600_000, ...options })
  try {
    await sandbox.files.write('hello.txt', 'hello')
    await sandbox.commands.run('python3 -m http.server 3000', { background: true, timeoutMs: 0 })
    await fn(sandbox, (number) => ({ 'E2b-Sandbox-Id': sandbox.sandboxId, 'E2b-Sandbox-Port': `${number}` }))
  } finally {
    await sandbox.kill()
  }
}

describe('ports', () => {
  it('are reached by the host that the client names, and by headers', async () => {
    await withServer({}, async (sandbox, named) => {
      await until('the server', async () => (await get(named(3000))).status === 200)
      assert.deepEqual(await get(named(3000)), { status: 200, text: 'hello' })
      assert.deepEqual(await get({ Host: sandbox.getHost(3000) }), { status: 200, text: 'hello' })
      const closed = await get(named(3001))
      assert.equal(closed.status, 502)
      const told = JSON.parse(closed.text)
      assert.deepEqual([told.sandboxId, told.port, told.code], [sandbox.sandboxId, 3001, 502])
    })
  })

  it('are private where that is asked for', async () => {
    await withServer({ network: { allowPublicTraffic: false } }, async (sandbox, named) => {
      const token = { 'e2b-traffic-access-token': sandbox.trafficAccessToken }
      assert.ok(sandbox.trafficAccessToken)
      assert.equal((await get(named(3000))).status, 403)
      await until('the server', async () => (await get({ ...named(3000), ...token })).status === 200)
      assert.equal((await get({ Host: sandbox.getHost(3000) })).status, 403)
      assert.equal((await get({ Host: sandbox.getHost(3000), ...token })).text, 'hello')
    })
  })

  it('wake a sandbox that is to be woken', async () => {
    await withServer({ lifecycle: { onTimeout: 'pause', autoResume: true } }, async (sandbox, named) => {
      await until('the server', async () => (await get(named(3000))).status === 200)
      await sandbox.pause()
      assert.deepEqual(await get(named(3000)), { status: 200, text: 'hello' })
      assert.equal((await sandbox.getInfo()).state, 'running')
    })
  })
})
