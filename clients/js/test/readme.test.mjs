// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import * as whole from '@burrow/sandbox'
import { testExamples } from './examples.mjs'

describe('the README', () => testExamples(process.env.README))

it('the types name what there is', () => {
  const types = readFileSync(new URL('index.d.ts', import.meta.resolve('@burrow/sandbox')), 'utf8')
  const named = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map((match) => match[1])
  assert.deepEqual(named.sort(), Object.keys(whole).sort())
})
