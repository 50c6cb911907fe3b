/** Calls a tool and gives its answer. */
export type Call = (name: string, args: Record<string, unknown>) => Promise<Record<string, unknown>>

/** What earlier calls made, for later ones to name. */
interface Made {
  ws: string
  memory: string
  head: string
  other: string
  collection: string
  pin: string
  edge: string
}

interface Step {
  name: string
  args: (made: Made) => Record<string, unknown>
  keep?: (answer: Record<string, unknown>, made: Made) => void
}

const agent_id = 'agent_test'
const inWs = ({ ws }: Made) => ({ workspace_id: ws })
const ofMemory = ({ ws, memory }: Made) => ({ workspace_id: ws, memory_id: memory })
const keepHead = (answer: Record<string, unknown>, made: Made): void => void (made.head = String(answer['watermark']))

/** Every tool once at least, with its required arguments and no other. */
const STEPS: readonly Step[] = [
  {
    name: 'mem_create_workspace',
    args: () => ({ name: 'all' }),
    keep: (answer, made) => (made.ws = String(answer['id'])),
  },
  { name: 'mem_get_workspace', args: inWs },
  { name: 'mem_list_workspaces', args: () => ({}) },
  { name: 'mem_update_workspace', args: inWs },
  {
    name: 'mem_create_collection',
    args: (made) => ({ ...inWs(made), name: 'notes' }),
    keep: (answer, made) => (made.collection = String(answer['id'])),
  },
  { name: 'mem_list_collections', args: inWs },
  { name: 'mem_delete_collection', args: ({ collection }) => ({ collection_id: collection }) },
  {
    name: 'mem_imprint',
    args: (made) => ({ ...inWs(made), agent_id, content: 'Rye bread.' }),
    keep: (answer, made) => (made.other = String(answer['memory_id'])),
  },
  {
    name: 'mem_imprint',
    args: (made) => ({ ...inWs(made), agent_id, content: 'The keeper likes rye bread.' }),
    keep: (answer, made) => {
      made.memory = String(answer['memory_id'])
      keepHead(answer, made)
    },
  },
  {
    name: 'mem_update',
    args: (made) => ({ ...ofMemory(made), agent_id, content: 'He likes rye.', expected_watermark: made.head }),
    keep: keepHead,
  },
  {
    name: 'mem_patch',
    args: (made) => ({
      ...ofMemory(made),
      agent_id,
      patch: [{ old_string: 'rye', new_string: 'tea' }],
      expected_watermark: made.head,
    }),
  },
  { name: 'mem_append', args: (made) => ({ ...ofMemory(made), agent_id, content: ' A lot.' }) },
  { name: 'mem_lookup', args: ofMemory },
  { name: 'mem_list_memories', args: inWs },
  { name: 'mem_get_watermark_history', args: ofMemory },
  { name: 'mem_recall', args: (made) => ({ ...inWs(made), query: 'tea' }) },
  {
    name: 'mem_pin',
    args: (made) => ({ ...inWs(made), query: 'tea' }),
    keep: (answer, made) => (made.pin = String(answer['pin_id'])),
  },
  { name: 'mem_unpin', args: ({ pin }) => ({ pin_id: pin }) },
  {
    name: 'mem_link',
    args: (made) => ({
      ...inWs(made),
      source_memory_id: made.memory,
      target_memory_id: made.other,
      edge_type: 'references',
      agent_id,
    }),
    keep: (answer, made) => (made.edge = String(Reflect.get(Object(answer['edge']), 'edge_id'))),
  },
  { name: 'mem_neighbors', args: ofMemory },
  { name: 'mem_traverse', args: (made) => ({ ...inWs(made), seed_memory_id: made.memory, depth: 1 }) },
  { name: 'mem_unlink', args: ({ edge }) => ({ edge_id: edge, agent_id }) },
  {
    name: 'mem_register_agent',
    args: (made) => ({ ...inWs(made), agent_id: 'agent_new', identity_provider: 'opaque' }),
  },
  { name: 'mem_list_agents', args: inWs },
  { name: 'mem_forget', args: (made) => ({ ...ofMemory(made), agent_id }) },
  { name: 'mem_forget', args: (made) => ({ ...inWs(made), memory_id: made.other, agent_id }) },
  { name: 'mem_delete_workspace', args: inWs },
]

/** Calls every tool; gives the answers by tool, the last of each, and the arguments they were called with. */
export async function callEveryTool(
  call: Call,
): Promise<Record<string, { args: object; answer: Record<string, unknown> }>> {
  const made: Made = { ws: '', memory: '', head: '', other: '', collection: '', pin: '', edge: '' }
  const calls: Record<string, { args: object; answer: Record<string, unknown> }> = {}
  for (const { name, args: argsFor, keep } of STEPS) {
    const args = argsFor(made)
    const answer = await call(name, args)
    keep?.(answer, made)
    calls[name] = { args, answer }
  }
  return calls
}
