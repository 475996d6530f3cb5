// SPDX-License-Identifier: Apache-2.0

export interface Abortable {
  signal?: AbortSignal
}

export interface BurrowOptions {
  /** Of the server; else BURROW_URL, else http://127.0.0.1:4747 */
  url?: string
  /** Else BURROW_API_KEY. */
  apiKey?: string
  fetch?: typeof globalThis.fetch
}

/** A refusal of the server, or what kept a request from it. */
export class BurrowError extends Error {
  /** For programs: 'not_found', 'unknown_field', …; 'invalid', 'unreachable', 'broken_stream', 'not_started' and 'clone_failed' are the client's. */
  readonly code: string
  /** Of HTTP; 0 where there was no answer. */
  readonly status: number
  readonly field?: string
  readonly remedy?: string
  readonly requestId?: string
}

/** A number, or text with a unit: 30000 or '30s', 536870912 or '512Mi'. */
export type Quantity = number | string

export interface Limits {
  memoryBytes?: Quantity
  cpuMillicores?: Quantity
  diskBytes?: Quantity
  maxProcesses?: number
}

export interface NetworkPolicy {
  enabled?: boolean
  allow?: string[]
  deny?: string[]
  default?: 'allow' | 'deny'
  observe?: boolean
  rateBytes?: Quantity
  secrets?: { host: string; header: string; value: string }[]
}

export type NetworkState = NetworkPolicy & { enabled: boolean; allow: string[]; deny: string[]; [member: string]: unknown }

export interface ForkSettings {
  name?: string
  description?: string
  labels?: Record<string, string | null>
  metadata?: Record<string, unknown>
  env?: Record<string, string | null>
  limits?: Limits
  idleTimeoutMs?: Quantity
  executionTimeoutMs?: Quantity
  pausedTimeoutMs?: Quantity
  onIdle?: 'end' | 'pause' | 'keep_files'
  expiresAt?: string
  network?: NetworkPolicy
}

/** The body of POST /sandboxes. */
export interface SandboxSettings extends ForkSettings {
  labels?: Record<string, string>
  env?: Record<string, string>
  runtime?: string
  snapshot?: string
  directory?: string
  user?: string
  project?: string
  files?: { path: string; content?: string; contentBase64?: string; mode?: string }[]
  [member: string]: unknown
}

export interface SandboxInfo {
  id: string
  name?: string
  labels: Record<string, string>
  state: string
  runtime?: string
  directory: string
  createdAt: string
  [member: string]: unknown
}

export interface SnapshotInfo {
  id: string
  name: string
  tag: string
  state: string
  createdAt: string
  [member: string]: unknown
}

export interface SandboxFilter extends Abortable {
  limit?: number
  state?: string
  selector?: string
  name?: string
  runtime?: string
  project?: string
}

export class Burrow {
  constructor(options?: BurrowOptions)
  readonly sandboxes: {
    create(settings?: SandboxSettings, options?: Abortable): Promise<Sandbox>
    get(idOrName: string, options?: Abortable): Promise<Sandbox>
    list(filter?: SandboxFilter): AsyncGenerator<Sandbox, void>
    /** Whether there was one. */
    kill(idOrName: string, options?: Abortable): Promise<boolean>
  }
  readonly snapshots: {
    get(snapshot: string, options?: Abortable): Promise<SnapshotInfo>
    list(filter?: Abortable & { limit?: number; sandboxId?: string; public?: boolean }): AsyncGenerator<SnapshotInfo, void>
    delete(snapshot: string, options?: Abortable): Promise<boolean>
  }
  /** Any other operation of /api/v1. */
  request(
    method: string,
    path: string,
    options?: Abortable & { query?: Record<string, string | number | boolean | undefined>; json?: unknown; body?: BodyInit; headers?: Record<string, string> },
  ): Promise<any>
}

export interface ExecOptions extends Abortable {
  env?: Record<string, string>
  directory?: string
  user?: string
  stdin?: string | Uint8Array
  timeoutMs?: Quantity
  files?: { path: string; content?: string; contentBase64?: string; mode?: string }[]
  /** Of each stream in the result; 16 MiB unless given. */
  maxOutputBytes?: number
}

export interface ExitInfo {
  id: string
  exitCode: number
  /** 'exited', 'timeout', 'memory', 'not_found', … */
  cause: string
  timedOut: boolean
  signal?: string
  error?: string
  durationMs: number
  resources?: Record<string, number>
}

export interface ExecResult extends ExitInfo {
  stdout: string
  stderr: string
  stdoutBytes: Uint8Array
  stderrBytes: Uint8Array
  truncated: boolean
}

export type ExecEvent =
  | { type: 'started'; id: string }
  | { type: 'stdout' | 'stderr'; bytes: Uint8Array; text: string }
  | ({ type: 'exit' } & ExitInfo)

/** Await it for its result, or iterate it, once. Leaving the loop ends the command. */
export interface Execution extends AsyncIterable<ExecEvent>, PromiseLike<ExecResult> {
  /** Known once it has started. */
  readonly id: string | undefined
  result(): Promise<ExecResult>
  signal(name: string, options?: Abortable): Promise<void>
  kill(options?: Abortable & { force?: boolean }): Promise<unknown>
}

export interface CodeOptions extends Abortable {
  language?: 'python' | 'javascript' | 'typescript' | 'bash' | 'r' | 'java'
  context?: string
  directory?: string
  env?: Record<string, string>
  timeoutMs?: Quantity
}

export interface CodeOutcome {
  context: string
  language: string
  count?: number
  stdout: string
  stderr: string
  results: { main?: boolean; data: Record<string, any>; chart?: unknown; table?: unknown }[]
  error?: { name: string; value: string; traceback: string }
  truncated: boolean
}

export interface ContextInfo {
  id: string
  language: string
  directory: string
  running: boolean
  [member: string]: unknown
}

export interface FileInfo {
  path: string
  kind: string
  sizeBytes: number
  mode: string
  modifiedAt: string
  target?: string
  etag: string
  [member: string]: unknown
}

export class Sandbox {
  private constructor()
  readonly info: SandboxInfo
  readonly id: string
  readonly name: string | undefined
  /** A text is for the shell; a list is program and arguments. */
  exec(command: string | string[], options?: ExecOptions): Execution
  runCode(code: string, options?: CodeOptions): Promise<CodeOutcome>
  streamCode(code: string, options?: CodeOptions): AsyncGenerator<{ type: string; [member: string]: any }, void>
  refresh(options?: Abortable): Promise<SandboxInfo>
  pause(options?: Abortable): Promise<void>
  resume(options?: Abortable): Promise<void>
  fork(settings?: ForkSettings, options?: Abortable): Promise<Sandbox>
  snapshot(settings?: { name?: string; tag?: string; description?: string; public?: boolean }, options?: Abortable): Promise<SnapshotInfo>
  /** Whether it was still there. */
  kill(options?: Abortable): Promise<boolean>
  readonly files: {
    read(path: string, options?: Abortable): Promise<string>
    readBytes(path: string, options?: Abortable): Promise<Uint8Array>
    stream(path: string, options?: Abortable): Promise<ReadableStream<Uint8Array>>
    write(path: string, content: string | Uint8Array | ArrayBuffer | ReadableStream, options?: Abortable & { mode?: string }): Promise<unknown>
    list(path?: string, options?: Abortable & { recursive?: boolean; depth?: number; kind?: string; limit?: number }): AsyncGenerator<FileInfo, void>
    stat(path: string, options?: Abortable): Promise<FileInfo>
    exists(path: string, options?: Abortable): Promise<boolean>
    makeDirectory(path: string, options?: Abortable): Promise<unknown>
    remove(path: string, options?: Abortable & { recursive?: boolean }): Promise<void>
    readArchive(path?: string, options?: Abortable): Promise<Uint8Array>
    writeArchive(path: string, tar: Uint8Array, options?: Abortable): Promise<void>
  }
  /** Interpreters beside the one that each language has. */
  readonly contexts: {
    create(settings?: { language?: CodeOptions['language']; directory?: string }, options?: Abortable): Promise<ContextInfo>
    list(options?: Abortable): AsyncGenerator<ContextInfo, void>
    get(id: string, options?: Abortable): Promise<ContextInfo>
    interrupt(id: string, options?: Abortable): Promise<void>
    restart(id: string, options?: Abortable): Promise<void>
    remove(id: string, options?: Abortable): Promise<void>
  }
  readonly network: {
    get(options?: Abortable): Promise<NetworkState>
    set(policy: NetworkPolicy, options?: Abortable): Promise<NetworkState>
    change(policy: NetworkPolicy, options?: Abortable): Promise<NetworkState>
    why(host: string, port: number, options?: Abortable & { protocol?: string }): Promise<{ allowed: boolean; reason?: string; remedy?: string; [member: string]: unknown }>
  }
}

// ---- Agentium ----

export type Encoding = 'utf8' | 'base64'

export interface WorkspaceFile {
  path: string
  contents: string
  encoding?: Encoding
  /** Burrow's: permissions. */
  mode?: number
}

export interface WorkspaceManifest {
  files?: WorkspaceFile[]
  gitClones?: { repo: string; path: string; ref?: string }[]
  env?: Record<string, string>
}

export interface WorkspaceSnapshot {
  takenAt: number
  files: WorkspaceFile[]
  env: Record<string, string>
  /** Burrow's: symbolic links. */
  links?: { path: string; target: string }[]
}

export interface SandboxRunOptions extends Abortable {
  language?: 'python' | 'node' | 'shell'
  /** 30 unless given. */
  timeoutSeconds?: number
  env?: Record<string, string>
}

export interface SandboxRunResult {
  output: string
  exitCode?: number
  timedOut?: boolean
}

export interface WorkspaceConfig extends BurrowOptions {
  workspace?: WorkspaceManifest
  env?: Record<string, string>
  /** Passed over: it is always burrow. */
  backend?: string
  runtime?: string
  snapshot?: string
  limits?: Limits
  name?: string
  labels?: Record<string, string>
  /** An hour unless given. */
  idleTimeoutMs?: Quantity
  /** None unless given, but for the hosts of clones. */
  network?: NetworkPolicy
  /** 300 unless given. */
  cloneTimeoutSeconds?: number
}

declare class Workspace {
  constructor(config?: WorkspaceConfig)
  readonly ready: boolean
  readonly sandbox: Sandbox | undefined
  start(options?: Abortable): Promise<void>
  run(code: string, options?: SandboxRunOptions): Promise<SandboxRunResult>
  shell(command: string, options?: Omit<SandboxRunOptions, 'language'>): Promise<SandboxRunResult>
  writeFile(path: string, contents: string, encoding?: Encoding, options?: Abortable): Promise<void>
  readFile(path: string, encoding?: Encoding, options?: Abortable): Promise<string | null>
  snapshot(options?: Abortable): Promise<WorkspaceSnapshot>
  resume(snapshot: WorkspaceSnapshot, options?: Abortable): Promise<void>
  close(options?: Abortable): Promise<void>
}

/** Agentium's CloudSandbox: hand it to the vendor's class as `remote`. Code is Python unless said. */
export class BurrowSandbox extends Workspace {
  readonly providerId: 'burrow'
}

/** Agentium's SandboxAgent over a sandbox of burrow. Code is for node unless said. */
export class SandboxAgent extends Workspace {
  readonly kind: 'sandbox-agent'
}

export interface JsonSchema {
  type: 'object'
  properties: Record<string, unknown>
  required: string[]
  additionalProperties: false
}

export interface SandboxTools {
  /** For generateText({tools}). */
  aiSdk: Record<string, { description: string; inputSchema: any; parameters: any; execute(input: any, options?: { abortSignal?: AbortSignal }): Promise<string> }>
  /** For chat.completions.create({tools}). */
  openai: { type: 'function'; function: { name: string; description: string; parameters: JsonSchema } }[]
  /** For responses.create({tools}). */
  openaiResponses: { type: 'function'; name: string; description: string; parameters: JsonSchema }[]
  /** For messages.create({tools}). */
  anthropic: { name: string; description: string; input_schema: JsonSchema }[]
  /** Does what a model asked for. The arguments are a map or its JSON; the answer is text for the model. */
  call(name: string, args: string | Record<string, unknown>, options?: Abortable): Promise<string>
}

export function createSandboxTools(
  sandbox: Sandbox | BurrowSandbox | SandboxAgent,
  options?: { prefix?: string; maxOutputCharacters?: number },
): SandboxTools
