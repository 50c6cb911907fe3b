import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { parsePairs, readContent } from '../input.ts'
import { counted } from '../output.ts'

export const imprint = defineCommand({
  flags: {
    text: { value: 'text', help: 'The content; - reads standard input' },
    'from-file': { value: 'file', help: 'Take the content from a file' },
    collection: { value: 'id', help: 'Collection to put it into' },
    chunker: { value: 'name', help: 'How to cut it: default, markdown, no-chunk, code-go, csv, jsonl' },
    'chunker-opt': { value: 'k=v', repeat: true, help: 'A setting of the chunker' },
    tag: { value: 'k=v', repeat: true, help: 'A tag' },
    'auto-link': { negatable: true, help: 'Link it to its nearest neighbours, if the workspace does so' },
  },
  notes: '--chunker-opt and --tag may be repeated.',
  examples: [
    "imprint --text 'The keeper likes rye bread.' --tag topic=food",
    'imprint --from-file notes.md --chunker markdown --chunker-opt target_tokens=256',
    'imprint --text - --quiet < notes.txt',
  ],
  async run(context, input) {
    const { client, workspace } = connectWorkspace(context)
    const result = await client.imprint(workspace, {
      tags: parsePairs('tag', input.tag),
      chunker_config: parsePairs('chunker-opt', input['chunker-opt']),
      content: await readContent(context.io, input.text, input['from-file']),
      collection_id: input.collection,
      chunker_id: input.chunker,
      auto_link: input['auto-link'],
    })
    await context.output.answer(result, () => [
      [result.memory_id, result.watermark, counted(result.cells_created, 'Cell')],
    ])
  },
})
