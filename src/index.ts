/**
 * The library: with `mem/client`, a part of it, the only supported import of this package. The words of the file and of
 * the product, workflow and runbook, name the same functions.
 */
import {
  createNodeRegistry,
  runWorkflow as run,
  validateWorkflow as validate,
  type Diagnostic,
  type RunOptions,
  type RunReport,
  type ValidateOptions,
  type Workflow,
} from './runbook/index.ts'

export * from './client/index.ts'
export * from './kernel/index.ts'
export * from './runbook/index.ts'
export { parseWorkflow as parseRunbook } from './runbook/index.ts'
export { runWorkflow as runRunbook, validateWorkflow as validateRunbook }

/** What is wrong with a workflow, ordered by position; without a registry for the types that every one has. */
function validateWorkflow(workflow: Workflow, options: Partial<ValidateOptions> = {}): Diagnostic[] {
  return validate(workflow, { registry: createNodeRegistry(), ...options })
}

/**
 * Runs a workflow in this process; what fails in it is in the report. Contract: runbook.md 11.
 * @throws InvalidWorkflowError, InvalidRunError before anything runs
 */
function runWorkflow(workflow: Workflow, options: RunOptions): Promise<RunReport> {
  const embedByHash = async (text: string): Promise<ArrayLike<number>> =>
    (await import('./memory/embedder/hash.ts')).embedDocument(text)
  return run(workflow, { ...options, services: { embedByHash, ...options.services } })
}

// over the functions of the same names that `export *` brings
export { runWorkflow, validateWorkflow }
