/** What a call to an orchestrator is about. */
export interface Target {
  readonly clusterId: string
  /** The client's default when absent. */
  readonly namespace?: string
  readonly apiVersion?: string
  readonly kind: string
  readonly name: string
}

/** A container orchestrator, given by the host. A failed call throws an error with the HTTP `status`. Contract: runbook.md 11. */
export interface OrchestratorClient extends CodeRunner {
  get(target: Target, signal: AbortSignal): Promise<unknown>
  list(
    request: Target & { limit: number; labelSelector?: string; fieldSelector?: string },
    signal: AbortSignal,
  ): Promise<{ items: readonly unknown[]; truncated?: boolean }>
  logs(
    request: Omit<Target, 'kind' | 'name'> & {
      pod: string
      container?: string
      tailLines?: number
      sinceSeconds?: number
    },
    signal: AbortSignal,
  ): Promise<{ logs: string; container?: string; truncated?: boolean }>
  /** Of one object, or with an empty `kind` of the namespace. */
  events(target: Target, signal: AbortSignal): Promise<readonly unknown[]>
  restart(target: Target, signal: AbortSignal): Promise<void>
  scale(request: Target & { replicas: number }, signal: AbortSignal): Promise<void>
  patch(request: Target & { patch: unknown; patchType: string }, signal: AbortSignal): Promise<unknown>
  delete(request: Target & { gracePeriodSeconds?: number }, signal: AbortSignal): Promise<void>
}

export interface CodeJob {
  readonly code: string
  /** JSON for $INPUT_FILE. */
  readonly input: string
  /** Python packages, as pip names them. */
  readonly requirements: readonly string[]
  readonly cpu?: string
  readonly memory?: string
  readonly image?: string
}

export interface JobRun {
  readonly signal: AbortSignal
  /** The job is given up by then, also when nobody is left to do it. */
  readonly timeoutMs?: number
  /** Receives each line of the log as it is written. */
  onLog?(line: string): void
  /** Receives what the user should know, such as a job that could not be removed. */
  onWarning?(message: string): void
}

export interface JobResult {
  readonly exitCode: number
  /** Of an end from outside, such as OOMKilled. */
  readonly reason?: string | undefined
  readonly logs: string
  /** Text of $OUTPUT_FILE. */
  readonly output?: string
}

/** Runs code as a job and removes the job however it ends; a failing job is a result, not an error. */
export interface CodeRunner {
  runJob(job: CodeJob, run: JobRun): Promise<JobResult>
}
