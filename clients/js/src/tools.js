// SPDX-License-Identifier: Apache-2.0
// A sandbox as tools for a model.
import { invalid } from './error.js'
import { Sandbox } from './sandbox.js'

const OUTPUT_CHARACTERS = 30_000
const text = (description) => ({ type: 'string', description })
const seconds = { type: 'number', description: 'after which it is ended; 30 unless given', minimum: 0 }

const definitions = [
  {
    name: 'run',
    description: 'Runs code in the sandbox and answers its output and exit code. Files stay from one call to the next.',
    properties: { code: text('the program'), language: { type: 'string', enum: ['python', 'node', 'shell'] }, timeoutSeconds: seconds },
    required: ['code', 'language'],
    run: (place, { code, language, timeoutSeconds }, signal) => place.run(code, { language, timeoutSeconds, signal }),
  },
  {
    name: 'shell',
    description: 'Runs a shell command in the sandbox and answers its output and exit code.',
    properties: { command: text('for sh -c'), timeoutSeconds: seconds },
    required: ['command'],
    run: (place, { command, timeoutSeconds }, signal) => place.run(command, { language: 'shell', timeoutSeconds, signal }),
  },
  {
    name: 'write_file',
    description: 'Writes a text file in the sandbox, instead of what it had.',
    properties: { path: text('from the working directory on'), contents: text('all of it') },
    required: ['path', 'contents'],
    run: async (place, { path, contents }, signal) => (await place.writeFile(path, contents, signal), 'ok'),
  },
  {
    name: 'read_file',
    description: 'Reads a text file of the sandbox.',
    properties: { path: text('from the working directory on') },
    required: ['path'],
    run: async (place, { path }, signal) => (await place.readFile(path, signal)) ?? '[file not found]',
  },
]

const commands = { python: (code) => ['python3', '-c', code], node: (code) => ['node', `--eval=${code}`], shell: (code) => ['sh', '-c', code] }

/** The three methods that tools need, of a sandbox of either kind. */
function placeOf(sandbox) {
  if (!(sandbox instanceof Sandbox))
    return {
      run: (code, options) => sandbox.run(code, options),
      writeFile: (path, contents, signal) => sandbox.writeFile(path, contents, 'utf8', { signal }),
      readFile: (path, signal) => sandbox.readFile(path, 'utf8', { signal }),
    }
  return {
    async run(code, { language, timeoutSeconds = 30, signal }) {
      const done = await sandbox.exec(commands[language](code), { timeoutMs: Math.max(1, Math.round(timeoutSeconds * 1000)), signal })
      return { output: done.stdout + done.stderr, exitCode: done.exitCode, ...(done.timedOut ? { timedOut: true } : {}) }
    },
    writeFile: (path, contents, signal) => sandbox.files.write(path, contents, { signal }),
    async readFile(path, signal) {
      return (await sandbox.files.exists(path, { signal })) ? sandbox.files.read(path, { signal }) : null
    },
  }
}

function check({ properties, required }, given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) throw invalid('arguments: a map is needed')
  for (const name of required) if (given[name] === undefined) throw invalid(`${name}: is missing`, name)
  for (const [name, value] of Object.entries(given)) {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (!property) throw invalid(`${name}: there is no such argument; there are ${Object.keys(properties).join(', ')}`, name)
    if (typeof value !== property.type) throw invalid(`${name}: a ${property.type} is needed`, name)
    if (property.enum && !property.enum.includes(value)) throw invalid(`${name}: one of ${property.enum.join(', ')} is needed`, name)
  }
}

function shortened(answer, limit) {
  const whole = typeof answer === 'string' ? answer : answer.output
  if (whole.length <= limit) return typeof answer === 'string' ? answer : JSON.stringify(answer)
  const cut = `${whole.slice(0, limit / 2)}\n[… ${whole.length - limit} characters left out …]\n${whole.slice(whole.length - limit / 2)}`
  return typeof answer === 'string' ? cut : JSON.stringify({ ...answer, output: cut })
}

/** What the AI SDK takes as a schema without its package. */
function aiSchema(jsonSchema, definition) {
  const validate = (value) => {
    try {
      check(definition, value)
      return { success: true, value }
    } catch (error) {
      return { success: false, error }
    }
  }
  return { [Symbol.for('vercel.ai.schema')]: true, [Symbol.for('vercel.ai.validator')]: true, _type: undefined, jsonSchema, validate }
}

/** Of a Sandbox, a BurrowSandbox or a SandboxAgent: {aiSdk, openai, openaiResponses, anthropic, call}. */
export function createSandboxTools(sandbox, { prefix = 'sandbox_', maxOutputCharacters = OUTPUT_CHARACTERS } = {}) {
  const place = placeOf(sandbox)
  const tools = definitions.map((definition) => {
    const { description, properties, required } = definition
    return { definition, name: prefix + definition.name, description, schema: { type: 'object', properties, required, additionalProperties: false } }
  })

  /** The answer as text for the model; what it asked wrongly is told to it, not thrown. The arguments are a map or its JSON. */
  async function call(name, given, { signal } = {}) {
    signal?.throwIfAborted()
    try {
      const tool = tools.find((tool) => tool.name === name)
      if (!tool) throw invalid(`there is no tool '${name}'`)
      const values = typeof given === 'string' ? parsed(given) : given
      check(tool.definition, values)
      return shortened(await tool.definition.run(place, values, signal), maxOutputCharacters)
    } catch (problem) {
      if (signal?.aborted) throw signal.reason
      return `[error: ${problem.message}]`
    }
  }

  return {
    aiSdk: Object.fromEntries(tools.map(({ name, description, schema, definition }) => {
      const inputSchema = aiSchema(schema, definition)
      return [name, { description, inputSchema, parameters: inputSchema, execute: (values, options) => call(name, values, { signal: options?.abortSignal }) }]
    })),
    openai: tools.map(({ name, description, schema }) => ({ type: 'function', function: { name, description, parameters: schema } })),
    openaiResponses: tools.map(({ name, description, schema }) => ({ type: 'function', name, description, parameters: schema })),
    anthropic: tools.map(({ name, description, schema }) => ({ name, description, input_schema: schema })),
    call,
  }
}

function parsed(given) {
  try {
    return JSON.parse(given)
  } catch {
    throw invalid('arguments: are not JSON')
  }
}
