// SPDX-License-Identifier: Apache-2.0
// The program in the guide does what its comments say.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { it } from 'node:test'

it('the example of the guide runs as it says', () => {
  const [, program] = readFileSync(process.env.GUIDE, 'utf8').match(/```js\n([\s\S]*?)```/)
  const wanted = [...program.matchAll(/console\.log\(.*\/\/ (.*)/g)].map((match) => match[1])
  assert.ok(wanted.length >= 2)
  writeFileSync('example-of-the-guide.js.mjs', program)
  const told = execFileSync('node', ['example-of-the-guide.js.mjs'], { encoding: 'utf8' })
  assert.deepEqual(told.split('\n').filter((line) => line), wanted)
})
