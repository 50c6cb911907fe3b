import { NodeError, type NodeFailure } from '../errors.ts'
import { mapOf, type Value } from '../hcl/values.ts'
import { listed, oneOrAll } from './gather.ts'
import type { Pass } from './pass.ts'
import type { Runner } from './runner.ts'
import { failureValue } from './node-scope.ts'
import { Frame, UNKNOWN, type Iteration, type Output } from './state.ts'

export interface LoopItems {
  readonly items: readonly Output[]
  /** Keys of a map's items. */
  readonly keys?: readonly string[]
  readonly concurrency: number
  /** `onItemError = "continue"`. */
  readonly keepGoing: boolean
  /** Variables that hold item and index. */
  readonly itemVariable?: string
  readonly indexVariable?: string
}

/** Runs a body once per item. Contract: runbook.md 4.5. */
export class LoopRun {
  private readonly runner: Runner
  private readonly outer: Pass
  private readonly opener: number
  private readonly config: LoopItems
  private readonly frames: Frame[] = []
  private readonly passes = new Set<Pass>()
  private readonly results: Output[]
  private readonly errors: { index: number; error: NodeFailure }[] = []
  private next = 0
  private settle: { resolve: (output: Output) => void; reject: (error: NodeError) => void } | undefined

  constructor(runner: Runner, outer: Pass, opener: number, config: LoopItems) {
    this.runner = runner
    this.outer = outer
    this.opener = opener
    this.config = config
    this.results = config.items.map(() => null)
    outer.loopFrames.set(opener, this.frames)
  }

  /** @throws NodeError of the item that failed, with its index */
  run(signal: AbortSignal): Promise<Output> {
    return new Promise((resolve, reject) => {
      this.settle = { resolve, reject }
      signal.addEventListener('abort', () => reject(new NodeError('cancelled', 'the loop was cancelled')))
      this.advance()
    })
  }

  private advance(): void {
    const { items, concurrency } = this.config
    while (this.passes.size < concurrency && this.next < items.length) this.begin(this.next++)
    if (this.passes.size === 0 && this.next >= items.length) this.end()
  }

  private begin(index: number): void {
    const { items, keys } = this.config
    const key = keys?.[index]
    const item: Output = items[index] ?? null
    const iteration: Iteration = {
      opener: this.opener,
      index,
      item,
      count: items.length,
      ...(key !== undefined && { key }),
    }
    const frame = new Frame(this.runner.graph, this.runner.membersOf(this.opener), this.outer.frame, iteration)
    this.setVariables(frame, item, index)
    // inside the body the opener's output is what this pass was started with
    frame.states.set(this.opener, { status: 'succeeded', output: item, attempts: [], durationMs: 0 })
    this.frames[index] = frame
    const pass = this.runner.pass(frame, (failure) => this.ended(pass, index, failure))
    this.passes.add(pass)
    this.runner.start(pass)
  }

  private setVariables(frame: Frame, item: Output, index: number): void {
    const { itemVariable, indexVariable } = this.config
    if (item === UNKNOWN) frame.unknownVariables = true
    else if (itemVariable !== undefined) frame.set(itemVariable, { node: this.opener, value: item })
    if (indexVariable !== undefined) frame.set(indexVariable, { node: this.opener, value: index })
  }

  private ended(pass: Pass, index: number, failure: NodeFailure | undefined): void {
    this.passes.delete(pass)
    if (!failure) this.results[index] = this.result(pass)
    else if (this.config.keepGoing && failure.code !== 'no_executor') this.errors.push({ index, error: failure })
    else {
      for (const other of this.passes) this.runner.fail(other, failure)
      this.next = this.config.items.length
      const { code, message, details, range } = failure
      this.settle?.reject(new NodeError(code, `item ${index}: ${message}`, { ...details, index }, { range }))
      return
    }
    this.advance()
  }

  /** The output of the node whose edge into the join is live; without a join, of the last nodes. */
  private result({ frame }: Pass): Output {
    const { graph } = this.runner
    const join = graph.bodies.get(this.opener)?.join
    const isLast = (node: number): boolean =>
      join === undefined
        ? (graph.outgoing[node] ?? []).length === 0 && frame.states.get(node)?.status === 'succeeded'
        : (graph.outgoing[node] ?? []).some((edge) => edge.to === join && (frame.edges.get(edge) ?? 'dead') !== 'dead')
    const outputOf = (node: number): [string, Output] => [
      graph.nodes[node]?.id ?? '',
      frame.states.get(node)?.output ?? null,
    ]
    return oneOrAll(frame.members.filter(isLast).map(outputOf))
  }

  private end(): void {
    this.exportVariables()
    const results = listed(this.results)
    const errors = this.errors
      .toSorted((a, b) => a.index - b.index)
      .map(({ index, error }): Value => mapOf(Object.entries({ index, error: failureValue(error) })))
    const output: Output =
      results === UNKNOWN
        ? UNKNOWN
        : mapOf(
            Object.entries({ loop: true, count: this.results.length, results, ...(errors.length > 0 && { errors }) }),
          )
    this.settle?.resolve(output)
  }

  /** What the last iteration set is visible behind the loop. */
  private exportVariables(): void {
    for (const [name, setters] of this.frames.at(-1)?.setters ?? []) {
      const last = setters.at(-1)
      if (last && last.node !== this.opener) this.outer.frame.set(name, last)
    }
  }
}
