import { path } from '../../client/transport.ts'
import { ITEM_STATUSES, ITEM_TYPES, SESSION_KINDS, type AgentSession, type WorkItem } from '../../platform/model.ts'
import { defineCommand } from '../command.ts'
import { excerpt, type Row } from '../output.ts'
import { callRest, PROJECT_FLAGS, RANGE_FLAGS, rangeQuery, showList, type List } from '../platform/rest.ts'

const WHERE_FLAGS = {
  branch: { value: 'name', help: 'Branch of its work' },
  'repository-link-id': { value: 'id', integer: true, help: 'Linked repository of the branch; 0 for none' },
} as const

const ITEM_FLAGS = {
  description: { value: 'text', help: 'What it is about' },
  status: { value: 'status', choices: ITEM_STATUSES, help: 'todo, in_progress or done' },
  ...WHERE_FLAGS,
  'session-id': { value: 'session', help: 'Agent session that works on it (session-…)' },
} as const

/** On the command line, 0 is what no id is. */
const unlessZero = (id: number | undefined): number | null | undefined => (id === 0 ? null : id)

const row = ({ id, type, status, title, branch }: WorkItem): Row => [id, type, status, excerpt(title), branch]

export const itemsAdd = defineCommand({
  flags: {
    type: { value: 'type', required: true, choices: ITEM_TYPES, help: 'feature or issue' },
    title: { value: 'text', required: true, help: 'In one line' },
    ...ITEM_FLAGS,
    ...PROJECT_FLAGS,
  },
  examples: ["platform items add --project 1 --type issue --title 'The lamp flickers'"],
  async run(context, input) {
    const items = path`/rest/v1/platform/projects/${String(input.project)}/work-items`
    const item = await callRest<WorkItem>(context, input, { method: 'POST', path: items, body: itemBody(input) })
    await context.output.answer(item, () => [row(item)])
  },
})

export const itemsList = defineCommand({
  flags: { ...RANGE_FLAGS, ...PROJECT_FLAGS },
  examples: ['platform items list --project 1'],
  async run(context, input) {
    const items = path`/rest/v1/platform/projects/${String(input.project)}/work-items`
    const call = { method: 'GET', path: items, query: rangeQuery(input) }
    const answer = await callRest<List<'work_items', WorkItem>>(context, input, call)
    await showList(context, answer, answer.work_items, row)
  },
})

export const itemsSet = defineCommand({
  args: { id: { help: 'Work item id' } },
  flags: {
    type: { value: 'type', choices: ITEM_TYPES, help: 'feature or issue' },
    title: { value: 'text', help: 'In one line' },
    ...ITEM_FLAGS,
    ...PROJECT_FLAGS,
  },
  notes: "What no flag names stays as it is; an empty value (--branch '') clears a field.",
  examples: ['platform items set 7 --project 1 --status done'],
  async run(context, input) {
    const items = path`/rest/v1/platform/projects/${String(input.project)}/work-items/${input.id}`
    const item = await callRest<WorkItem>(context, input, { method: 'PATCH', path: items, body: itemBody(input) })
    await context.output.answer(item, () => [row(item)])
  },
})

interface ItemInput {
  type: string | undefined
  title: string | undefined
  description: string | undefined
  status: string | undefined
  branch: string | undefined
  'repository-link-id': number | undefined
  'session-id': string | undefined
}

const itemBody = (input: ItemInput): object => ({
  type: input.type,
  title: input.title,
  description: input.description,
  status: input.status,
  branch: input.branch,
  repository_link_id: unlessZero(input['repository-link-id']),
  session_id: input['session-id'],
})

const sessionRow = ({ sid, session_id, kind, status, branch }: AgentSession): Row => [
  sid,
  session_id,
  kind,
  status,
  branch,
]

export const sessionsAdd = defineCommand({
  flags: {
    kind: { value: 'kind', choices: SESSION_KINDS, help: 'work or repair (work)' },
    ...WHERE_FLAGS,
    'work-item-id': { value: 'id', integer: true, help: 'Work item it is for; 0 for none' },
    ...PROJECT_FLAGS,
  },
  examples: ['platform sessions add --project 1 --work-item-id 7 --branch fix/lamp'],
  async run(context, input) {
    const sessions = path`/rest/v1/platform/projects/${String(input.project)}/sessions`
    const body = {
      kind: input.kind,
      branch: input.branch,
      repository_link_id: unlessZero(input['repository-link-id']),
      work_item_id: unlessZero(input['work-item-id']),
    }
    const session = await callRest<AgentSession>(context, input, { method: 'POST', path: sessions, body }, 'sid')
    await context.output.answer(session, () => [sessionRow(session)])
  },
})

export const sessionsList = defineCommand({
  flags: { ...RANGE_FLAGS, ...PROJECT_FLAGS },
  examples: ['platform sessions list --project 1'],
  async run(context, input) {
    const sessions = path`/rest/v1/platform/projects/${String(input.project)}/sessions`
    const call = { method: 'GET', path: sessions, query: rangeQuery(input) }
    const answer = await callRest<List<'sessions', AgentSession>>(context, input, call)
    await showList(context, answer, answer.sessions, sessionRow)
  },
})

export const sessionsClose = defineCommand({
  args: { sid: { help: 'Number of the session' } },
  flags: PROJECT_FLAGS,
  examples: ['platform sessions close 3 --project 1'],
  async run(context, input) {
    const sessions = path`/rest/v1/platform/projects/${String(input.project)}/sessions/${input.sid}`
    const call = { method: 'PATCH', path: sessions, body: { status: 'closed' } }
    const session = await callRest<AgentSession>(context, input, call, 'sid')
    await context.output.answer(session, () => [sessionRow(session)])
  },
})
