import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import { connectKernel, KERNEL_FLAGS } from '../kernel/connect.ts'
import { followActivity } from '../kernel/follow.ts'
import { eventRow } from '../kernel/show.ts'
import { untilStopped } from '../until-stopped.ts'

/** Contract: kernel-2.md 17. */

export const health = defineCommand({
  flags: KERNEL_FLAGS,
  notes: 'Exit code 3 unless all is well.',
  examples: ['kernel health', 'kernel health --output json'],
  async run(context, input) {
    const answer = await connectKernel(context, input).health()
    await context.output.answer(answer, () => [
      [answer.status, `version ${answer.version}`, `since ${answer.startedAt}`],
      ...Object.entries(answer.checks).map(([name, { status, detail, latencyMs }]) => [
        name,
        status,
        latencyMs === undefined ? undefined : `${latencyMs} ms`,
        detail,
      ]),
    ])
    if (answer.status !== 'ok')
      throw new CliError(EXIT.server, `the kernel is ${answer.status}`, 'The checks above say why.')
  },
})

export const capabilities = defineCommand({
  flags: KERNEL_FLAGS,
  notes: 'What is not listed answers 501: the server lacks a part that it needs.',
  examples: ['kernel capabilities'],
  async run(context, input) {
    const answer = await connectKernel(context, input).capabilities()
    await context.output.list(answer, answer.capabilities, ({ id, version, operations }) => [
      id,
      version,
      operations.join(' '),
    ])
  },
})

export const activity = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    run: { value: 'run', help: 'Of this run' },
    objective: { value: 'objective', help: 'Of this objective' },
    type: { value: 'events', list: true, help: 'Of these types: run.created,approval.approved' },
    limit: { value: 'n', integer: true, default: 25, help: 'Rows at most, 100 at a time' },
    cursor: { value: 'cursor', help: 'Go on where an earlier answer ended' },
    follow: { short: 'f', help: 'Go on with what happens, the newest last, until Ctrl-C' },
  },
  notes: 'The newest first.',
  examples: ['kernel activity', 'kernel activity --follow', 'kernel activity --type action.failed,run.paused'],
  async run(context, { run, objective, type, limit, cursor, follow, ...input }) {
    const client = connectKernel(context, input)
    const query = {
      ...(run !== undefined && { runId: run }),
      ...(objective !== undefined && { objectiveId: objective }),
      ...(type && { eventType: type }),
    }
    if (follow) {
      return untilStopped(async (signal) => {
        const follower = { signal, tell: (remark: string) => context.output.note(remark) }
        try {
          for await (const item of followActivity(client, query, limit, follower)) {
            await context.output.answer(item, () => [eventRow(item)])
          }
        } catch (error) {
          if (!signal.aborted) throw error
        }
      })
    }
    const page = await client.activity({ ...query, limit, ...(cursor !== undefined && { cursor }) })
    await context.output.list(page, page.items, eventRow)
    if (page.hasMore && page.nextCursor !== undefined) context.output.note(`more: --cursor ${page.nextCursor}`)
  },
})
