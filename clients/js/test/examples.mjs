// SPDX-License-Identifier: Apache-2.0
// Programs of a document: each js block is run by itself, and prints what its comments behind console.log say.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { it } from 'node:test'
import { promisify } from 'node:util'

export function testExamples(document) {
  const blocks = [...readFileSync(document, 'utf8').matchAll(/^```js\n(.*?)^```/gms)].map((match) => match[1])
  it('has examples', () => assert.ok(blocks.length > 0))
  for (const [i, block] of blocks.entries())
    it(`example ${i + 1} prints what it says`, async () => {
      writeFileSync(`example-${i}.mjs`, block)
      const expected = [...block.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((match) => match[1])
      const { stdout } = await promisify(execFile)(process.execPath, [`example-${i}.mjs`])
      assert.deepEqual(stdout.split('\n').filter(Boolean), expected)
    })
}
