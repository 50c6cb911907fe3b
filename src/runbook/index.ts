/** The runbook layer for other programs. Contract: runbook.md 11. */
export { renderGraph, type GraphOptions } from './draw/index.ts'
export { InvalidWorkflowError, NodeError, type NodeErrorCode, type NodeFailure } from './errors.ts'
export type { Expression } from './hcl/ast.ts'
export type { Diagnostic } from './hcl/diagnostics.ts'
export { evaluate } from './hcl/evaluate.ts'
export { constantScope, type Scope } from './hcl/scope.ts'
export type { Value } from './hcl/values.ts'
export { createKubernetesClient, type KubernetesOptions } from './kubernetes/index.ts'
export type { Workflow } from './model.ts'
export { parseWorkflow, type ParsedWorkflow } from './parse-workflow.ts'
export { planWorkflow, type Plan } from './plan.ts'
export type { CodeJob, CodeRunner, JobResult, JobRun, OrchestratorClient, Target } from './ports.ts'
export { InvalidRunError } from './prepare.ts'
export {
  createNodeRegistry,
  type NodeContext,
  type NodeExecutor,
  type NodeMetadata,
  type NodeRegistry,
  type NodeResult,
} from './registry.ts'
export { JournalFile } from './run/journal.ts'
export type { JournalSink, RunEvent, RunOptions } from './run/options.ts'
export type { ReportNode, RunReport } from './run/report.ts'
export { runWorkflow } from './run-workflow.ts'
export type { Schema } from './schema.ts'
export { validateWorkflow, type ValidateOptions } from './validate/index.ts'
