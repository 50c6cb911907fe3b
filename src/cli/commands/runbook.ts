/** The verbs of the runbook layer in one module: in parts, the bundle would be scattered over three times as many files. */
export { drawing } from './drawing.ts'
export { list, show } from './nodes.ts'
export { plan } from './plan.ts'
export { run } from './run.ts'
export { validate } from './validate.ts'
