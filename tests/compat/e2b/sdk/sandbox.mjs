// SPDX-License-Identifier: Apache-2.0
// An older copy of the client under another name: the control plane, which is all of it that can be pointed elsewhere.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Sandbox } from '@e2b/sdk'

it('makes, lists, connects to and ends sandboxes', async () => {
  const sandbox = await Sandbox.create('base', { metadata: { by: 'sdk' } })
  try {
    const info = await Sandbox.getInfo(sandbox.sandboxId)
    assert.equal(info.sandboxId, sandbox.sandboxId)
    const found = await Sandbox.list({ query: { metadata: { by: 'sdk' } } }).nextItems()
    assert.ok(found.some((item) => item.sandboxId === sandbox.sandboxId))
    await Sandbox.setTimeout(sandbox.sandboxId, 120_000)
    const same = await Sandbox.connect(sandbox.sandboxId)
    assert.equal(same.sandboxId, sandbox.sandboxId)
  } finally {
    assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
  }
  assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
})
