import type { Workspace, WorkspaceRequest } from '../../client/types.ts'
import { defineCommand, PAGE_FLAGS } from '../command.ts'
import { connect } from '../connect.ts'
import type { Row } from '../output.ts'

const WORKSPACE_ID = { id: { help: 'Workspace id (ws_…)' } } as const

const FIELD_FLAGS = {
  region: { value: 'region', help: 'Where its data belongs; a remark' },
  chunker: { value: 'name', help: 'How texts are cut: default, markdown, no-chunk, code-go, csv, jsonl' },
  'embedding-model': { value: 'provider:model', help: "Instead of the server's model" },
  'auto-link': { negatable: true, help: 'Link new Memories to their nearest neighbours' },
} as const

const row = (workspace: Workspace): Row => [
  workspace.id,
  workspace.name,
  workspace.region,
  workspace.chunker_id,
  workspace.embedding_model,
  workspace.auto_link_enabled ? 'auto-link' : undefined,
]

export const list = defineCommand({
  flags: PAGE_FLAGS,
  examples: ['workspaces list', 'workspaces list --limit 20 --output json'],
  async run(context, page) {
    const answer = await connect(context).listWorkspaces(page)
    await context.output.list(answer, answer.workspaces, row)
  },
})

export const create = defineCommand({
  flags: { name: { value: 'name', required: true, help: 'Name; need not be unique' }, ...FIELD_FLAGS },
  examples: [
    'workspaces create --name notes',
    'export MEM_WORKSPACE=$(mem workspaces create --name docs --chunker markdown --quiet)',
  ],
  async run(context, { name, ...fields }) {
    const workspace = await connect(context).createWorkspace(overlay({ name }, fields))
    await context.output.answer(workspace, () => [row(workspace)])
  },
})

export const show = defineCommand({
  args: WORKSPACE_ID,
  examples: ['workspaces show ws_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { id }) {
    const workspace = await connect(context, id).getWorkspace(id)
    await context.output.answer(workspace, () => [row(workspace)])
  },
})

export const update = defineCommand({
  args: WORKSPACE_ID,
  flags: { name: { value: 'name', help: 'New name' }, ...FIELD_FLAGS },
  notes: "What no flag names stays as it is; an empty value (--region '') clears a field.",
  examples: [
    'workspaces update ws_01JZ8QK3V5M9T2X7R4N6P0B1CD --name archive',
    "workspaces update ws_01JZ8QK3V5M9T2X7R4N6P0B1CD --region '' --no-auto-link",
  ],
  async run(context, { id, name, ...fields }) {
    const client = connect(context, id)
    const { id: _, created_at, updated_at, ...current } = await client.getWorkspace(id)
    const request = overlay({ ...current, name: name ?? current.name }, fields)
    const workspace = await client.updateWorkspace(id, request)
    await context.output.answer(workspace, () => [row(workspace)])
  },
})

export const remove = defineCommand({
  args: WORKSPACE_ID,
  notes: 'Collections, pins and agents go with it; Memories must be forgotten first.',
  examples: ['workspaces delete ws_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { id }) {
    await connect(context, id).deleteWorkspace(id)
    context.output.done(id, 'deleted')
  },
})

interface Fields {
  region: string | undefined
  chunker: string | undefined
  'embedding-model': string | undefined
  'auto-link': boolean | undefined
}

/** The request with the given fields put over it. */
const overlay = (request: WorkspaceRequest, given: Fields): WorkspaceRequest => ({
  ...request,
  region: unlessEmpty(given.region ?? request.region),
  chunker_id: unlessEmpty(given.chunker ?? request.chunker_id),
  embedding_model: unlessEmpty(given['embedding-model'] ?? request.embedding_model),
  auto_link_enabled: given['auto-link'] ?? request.auto_link_enabled,
})

const unlessEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text)
