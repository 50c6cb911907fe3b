/** The library: the only supported import of this package. */
import type * as Layer from './runbook/index.ts'

export { MemoryApiError, MemoryNetworkError, MemoryRequestError, MemoryTimeoutError } from './client/errors.ts'
export type * from './client/graph-types.ts'
export { MemoryClient, type MemoryClientOptions, type WriteOptions } from './client/memory-client.ts'
export type * from './client/types.ts'
export type {
  Diagnostic,
  GraphOptions,
  NodeExecutor,
  NodeRegistry,
  ParsedWorkflow,
  Plan,
  RunOptions,
  RunReport,
  ValidateOptions,
  Value,
  Workflow,
} from './runbook/index.ts'

type Runbook = typeof Layer

/** The runbook layer is loaded by the first call: who wants a MemoryClient doesn't wait for it. */
const runbook = (): Promise<Runbook> => import('./runbook/index.ts')

/** A function of the runbook layer that can be called before the layer is there. */
type Later<F extends (...args: never[]) => unknown> = (...args: Parameters<F>) => Promise<Awaited<ReturnType<F>>>

/** Reads a workflow; never throws. Contract: runbook.md 11, as the following. */
export const parseWorkflow: Later<Runbook['parseWorkflow']> = async (...args) =>
  (await runbook()).parseWorkflow(...args)

export const validateWorkflow: Later<Runbook['validateWorkflow']> = async (...args) =>
  (await runbook()).validateWorkflow(...args)

export const planWorkflow: Later<Runbook['planWorkflow']> = async (...args) => (await runbook()).planWorkflow(...args)

export const renderGraph: Later<Runbook['renderGraph']> = async (...args) => (await runbook()).renderGraph(...args)

export const evaluate: Later<Runbook['evaluate']> = async (...args) => (await runbook()).evaluate(...args)

export const createNodeRegistry: Later<Runbook['createNodeRegistry']> = async (...args) =>
  (await runbook()).createNodeRegistry(...args)

/** Runs a workflow; what fails in it is in the report. @throws for an invalid workflow or argument */
export const runWorkflow: Later<Runbook['runWorkflow']> = async (...args) => (await runbook()).runWorkflow(...args)
