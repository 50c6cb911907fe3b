import { path } from '../../client/transport.ts'
import { MEMBER_ROLES, type Member, type Project } from '../../platform/model.ts'
import { defineCommand } from '../command.ts'
import type { Row } from '../output.ts'
import {
  callRest,
  PROJECT_FLAGS,
  RANGE_FLAGS,
  rangeQuery,
  sendRest,
  SESSION_FLAG,
  showList,
  type List,
} from '../platform/rest.ts'

const SOURCE_CONTROL_FLAG = {
  'source-control': { value: 'who', choices: ['external', 'none'], help: 'external: its code is managed elsewhere' },
} as const

const sourceControl = (given: 'external' | 'none' | undefined): 'external' | null | undefined =>
  given === 'none' ? null : given

const row = ({ id, name, source_control, permissions }: Project): Row => [
  id,
  name,
  source_control,
  permissions.join(' '),
]

export const projectsAdd = defineCommand({
  flags: {
    name: { value: 'name', required: true, help: 'Unique in the organization' },
    ...SOURCE_CONTROL_FLAG,
    ...SESSION_FLAG,
  },
  examples: ['platform projects add --name website'],
  async run(context, input) {
    const body = { name: input.name, source_control: sourceControl(input['source-control']) }
    const call = { method: 'POST', path: path`/rest/v1/platform/projects`, body }
    const project = await callRest<Project>(context, input, call)
    await context.output.answer(project, () => [row(project)])
  },
})

export const projectsList = defineCommand({
  flags: { ...RANGE_FLAGS, ...SESSION_FLAG },
  examples: ['platform projects list'],
  async run(context, input) {
    const call = { method: 'GET', path: path`/rest/v1/platform/projects`, query: rangeQuery(input) }
    const answer = await callRest<List<'projects', Project>>(context, input, call)
    await showList(context, answer, answer.projects, row)
  },
})

export const projectsSet = defineCommand({
  args: { id: { help: 'Project id' } },
  flags: { name: { value: 'name', help: 'New name' }, ...SOURCE_CONTROL_FLAG, ...SESSION_FLAG },
  examples: ['platform projects set 1 --name site', 'platform projects set 1 --source-control external'],
  async run(context, input) {
    const body = { name: input.name, source_control: sourceControl(input['source-control']) }
    const call = { method: 'PATCH', path: path`/rest/v1/platform/projects/${input.id}`, body }
    const project = await callRest<Project>(context, input, call)
    await context.output.answer(project, () => [row(project)])
  },
})

const USER = { user: { help: 'User id' } } as const
const memberRow = ({ user_id, role }: Member): Row => [user_id, role]

export const membersSet = defineCommand({
  args: USER,
  flags: {
    role: { value: 'role', required: true, choices: MEMBER_ROLES, help: 'reader, developer or manager' },
    ...PROJECT_FLAGS,
  },
  examples: ['platform members set 2 --project 1 --role developer'],
  async run(context, input) {
    const { user, project, role } = input
    const members = path`/rest/v1/platform/projects/${String(project)}/members/${user}`
    const member = await callRest<Member>(context, input, { method: 'PUT', path: members, body: { role } }, 'role')
    await context.output.answer(member, () => [memberRow(member)])
  },
})

export const membersList = defineCommand({
  flags: { ...RANGE_FLAGS, ...PROJECT_FLAGS },
  examples: ['platform members list --project 1'],
  async run(context, input) {
    const members = path`/rest/v1/platform/projects/${String(input.project)}/members`
    const call = { method: 'GET', path: members, query: rangeQuery(input) }
    const answer = await callRest<List<'members', Member>>(context, input, call)
    await showList(context, answer, answer.members, memberRow)
  },
})

export const membersRemove = defineCommand({
  args: USER,
  flags: PROJECT_FLAGS,
  examples: ['platform members remove 2 --project 1'],
  async run(context, input) {
    const members = path`/rest/v1/platform/projects/${String(input.project)}/members/${input.user}`
    await sendRest(context, input, { method: 'DELETE', path: members })
    context.output.done(input.user, 'removed')
  },
})
