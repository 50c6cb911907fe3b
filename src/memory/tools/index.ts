import { endAfter } from '../../base/deadline.ts'
import type { IdSource } from '../../base/ids.ts'
import { invalidInput } from '../errors.ts'
import type { Claim } from '../identity.ts'
import { beforeDeadline } from '../routes/pipeline.ts'
import { refuseBadText } from '../routes/route.ts'
import type { MemoryService } from '../service.ts'
import { agentTools } from './agents.ts'
import { graphTools } from './graph.ts'
import { inputSchema, outputSchema } from './json-schema.ts'
import { memoryTools } from './memories.ts'
import { recallTools } from './recall.ts'
import { EFFECTS, ToolCall, type Tool, type ToolPeer } from './tool.ts'
import { workspaceTools } from './workspaces.ts'

const TOOLS: readonly Tool[] = [...workspaceTools, ...memoryTools, ...recallTools, ...graphTools, ...agentTools]

/** A tool as clients see it. */
export interface ToolDescription {
  name: string
  description: string
  inputSchema: Record<string, unknown>
  outputSchema: Record<string, unknown>
  annotations: Record<string, boolean>
}

/** Runs a call that has been read, and gives its answer as JSON; aborted, it is applied wholly or not at all. @throws MemoryError */
export type Run = (ending: AbortController) => Promise<string>

/** The tools over the memory service. Contract: memory.md 12.2. */
export class MemoryTools {
  readonly #service: MemoryService
  readonly #ids: IdSource
  readonly #timeoutMs: number
  #descriptions: readonly ToolDescription[] | undefined

  /** A call runs `timeoutMs` at most. */
  constructor(service: MemoryService, ids: IdSource, timeoutMs: number) {
    this.#service = service
    this.#ids = ids
    this.#timeoutMs = timeoutMs
  }

  get descriptions(): readonly ToolDescription[] {
    this.#descriptions ??= TOOLS.map((tool) => ({
      name: tool.name,
      description: tool.description,
      inputSchema: inputSchema(tool.input),
      outputSchema: outputSchema(tool.output),
      annotations: EFFECTS[tool.effect],
    }))
    return this.#descriptions
  }

  /** Makes sure that the agent is who it says it is. @throws agent_verification_failed 401. */
  verify(claim: Claim): void {
    this.#service.agents.verify(claim)
  }

  /**
   * Reads a call, and gives what runs it; a pinned agent writes in place of the one that the arguments name.
   * @throws invalid_input for an unknown tool, and for missing, mistyped and unknown arguments; nothing has been done then.
   */
  prepare(name: string, args: Record<string, unknown>, peer: ToolPeer, pinned?: Claim): Run {
    const tool = TOOLS.find((each) => each.name === name)
    if (!tool) throw invalidInput(`there is no tool '${name}': tools/list names them`, 'name')
    refuseBadText(args)
    const run = tool.prepare(args)
    return (ending) =>
      endAfter(this.#timeoutMs, ending, () => {
        const { signal } = ending
        const call = new ToolCall({ service: this.#service, ids: this.#ids, tool, peer, pinned, signal })
        return beforeDeadline(signal, run(call))
      })
  }
}
