// SPDX-License-Identifier: Apache-2.0
import { describe } from 'node:test'
import { testExamples } from './examples.mjs'

describe('docs/guide/agentium.md', () => testExamples(process.env.GUIDE))
