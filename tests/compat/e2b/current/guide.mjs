// SPDX-License-Identifier: Apache-2.0
// The programs in the guide do what their comments say.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { it } from 'node:test'

const programs = [...readFileSync(process.env.GUIDE, 'utf8').matchAll(/```[jt]s\n([\s\S]*?)```/g)].map((match) => match[1])

it('the guide has examples', () => assert.equal(programs.length, 2))

for (const [number, program] of programs.entries()) it(`example ${number + 1} of the guide runs as it says`, () => {
  const wanted = [...program.matchAll(/console\.log\(.*\/\/ (.*)/g)].map((match) => match[1])
  assert.ok(wanted.length >= 1)
  writeFileSync('example-of-the-guide.js.mjs', program)
  const told = execFileSync('node', ['example-of-the-guide.js.mjs'], { encoding: 'utf8' })
  assert.deepEqual(told.split('\n').filter((line) => line), wanted)
})
