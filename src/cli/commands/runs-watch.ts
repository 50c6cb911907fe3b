import type { ActionCall, ActivityItem, Run, Turn } from '../../client/kernel/kernel-types.ts'
import type { KernelClient } from '../../client/kernel-client.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { connectKernel, KERNEL_FLAGS } from '../kernel/connect.ts'
import { followRun, isEnded, outlast, type Follower } from '../kernel/follow.ts'
import { approvalRow, eventRow, runRow } from '../kernel/show.ts'
import { excerpt, type Row } from '../output.ts'
import { untilStopped } from '../until-stopped.ts'

/** One run, as it stands and as it goes. Contract: kernel-2.md 17. */

const PAGE = 100

export const show = defineCommand({
  args: { id: { help: 'Run' } },
  flags: { ...KERNEL_FLAGS, audit: { help: 'What each step of its runbook did' } },
  notes: 'With its last 100 turns, action calls and approvals.',
  examples: [
    'runs show 019cad8f-ac00-700a-8793-2bcb6ffdf06f',
    'runs show 019cad8f-ac00-700a-8793-2bcb6ffdf06f -o yaml',
  ],
  async run(context, { id, audit, ...input }) {
    const client = connectKernel(context, input)
    if (audit) {
      const found = await client.runs.audit(id)
      return context.output.answer(found, () =>
        Object.entries(found).map(([name, value]) => [
          name,
          Array.isArray(value) ? `${value.length}` : excerpt(JSON.stringify(value)),
        ]),
      )
    }
    const run = await client.runs.get(id)
    const [turns, calls, approvals] = await Promise.all([
      client.turns.list({ runId: id, limit: PAGE, afterSequence: Math.max(0, run.lastAppliedTurn + 1 - PAGE) }),
      lastCalls(client, id),
      client.approvals.list({ runId: id, limit: PAGE, order: 'created_desc' }),
    ])
    const value = { run, turns: turns.items, calls, approvals: approvals.items.toReversed() }
    await context.output.answer(value, () => [
      runRow(run),
      ...(run.error ? [['error', run.error.code, excerpt(run.error.message, 2000)]] : []),
      ...outputRows(run),
      ...run.humanInterventions.map((asked) => [
        asked.id,
        'intervention',
        asked.status,
        excerpt([asked.summary, ...asked.challenge].join('. '), 500),
      ]),
      ...turns.items.map(turnRow),
      ...calls.map((call) => [call.id, 'call', call.status, `${call.skillId} ${call.action}`, call.error]),
      ...value.approvals.map(approvalRow),
    ])
  },
})

/** The list begins with the oldest. */
async function lastCalls(client: KernelClient, runId: string): Promise<ActionCall[]> {
  const last: ActionCall[] = []
  for await (const call of client.paginate((at) => client.actionCalls.list({ runId, limit: PAGE, ...at }))) {
    last.push(call)
    if (last.length > PAGE) last.shift()
  }
  return last
}

const turnRow = ({ id, sequence, status, outputSummary = '', error }: Turn): Row => [
  id,
  `turn ${sequence}`,
  status,
  excerpt(outputSummary),
  error && `(${error.code}: ${excerpt(error.message, 500)})`,
]

const outputRows = ({ output }: Run): string[][] =>
  output === undefined ? [] : [['output', excerpt(typeof output === 'string' ? output : JSON.stringify(output), 2000)]]

export const watch = defineCommand({
  args: { id: { help: 'Run' } },
  flags: KERNEL_FLAGS,
  notes:
    'Shows all that happens to it until it ends. Exit code 0 when it completed, 4 when it failed or was ' +
    'canceled, 130 after Ctrl-C. A server that is restarted is waited for.',
  examples: ['runs watch 019cad8f-ac00-700a-8793-2bcb6ffdf06f'],
  async run(context, { id, ...input }) {
    const client = connectKernel(context, input)
    const run = await untilStopped(async (signal) => {
      const follower: Follower = { signal, tell: (remark) => context.output.note(remark) }
      try {
        const events = followRun(client, id, follower)
        let next = await events.next()
        for (; !next.done; next = await events.next()) {
          const { value } = next
          await context.output.answer(value, () => [eventRow(value)])
          const ask = await outlast(follower, () => questionOf(client, value))
          if (ask !== undefined) follower.tell(`it waits for you: mem ${ask}${inScope(input.scope)}`)
        }
        return next.value
      } catch (error) {
        throw signal.aborted ? stopped(id, input.scope) : error
      }
    })
    if (!isEnded(run)) throw stopped(id, input.scope)
    await context.output.answer(run, () => [runRow(run), ...outputRows(run)])
    if (run.status === 'completed') return
    const why = run.error ? `: ${run.error.message} (${run.error.code})` : ''
    throw new CliError(EXIT.failure, `the run ${run.status === 'failed' ? 'failed' : 'was canceled'}${why}`)
  },
})

const stopped = (id: string, scope: string): CliError =>
  new CliError(EXIT.stopped, 'stopped; the run goes on', `Look again: mem runs watch ${id}${inScope(scope)}`)

/** Of a command that is shown, where it must say where. */
const inScope = (scope: string): string => (scope === KERNEL_FLAGS.scope.default ? '' : ` --scope ${scope}`)

/** The command that answers what an event asks; undefined when it asks nothing, or was answered since. */
async function questionOf(
  client: KernelClient,
  { eventType, payload, runId }: ActivityItem,
): Promise<string | undefined> {
  if (eventType === 'action.approval_requested' && typeof payload?.['approvalId'] === 'string') {
    const { id, status } = await client.approvals.get(payload['approvalId'])
    return status === 'pending' ? `approvals decide ${id} approve` : undefined
  }
  if (eventType !== 'action.human_intervention_required' || runId === undefined) return undefined
  const { humanInterventions } = await client.runs.get(runId)
  const open = humanInterventions.find((asked) => asked.status === 'pending')
  return open && `runs command ${runId} intervene --intervention ${open.id} --outcome succeeded|failed|retry`
}
