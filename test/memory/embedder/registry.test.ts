import { describe, expect, test } from 'vitest'
import { createEmbedder, isKnownModel } from '../../../src/memory/embedder/registry.ts'
import { never, settings } from './support.ts'

describe('models', () => {
  test.each([
    ['hash:', 'hash:default'],
    ['noop:', 'noop:default'],
    ['openai:', 'openai:text-embedding-3-small'],
    ['voyage:', 'voyage:voyage-3'],
    ['gemini:', 'gemini:text-embedding-004'],
    ['openai:a:b', 'openai:a:b'],
  ])('%s is %s', (named, model) => {
    expect(isKnownModel(named)).toBe(true)
    expect(createEmbedder(named, settings()).model).toBe(model)
  })

  test.each(['', 'openai', 'cohere:x', ':x', 'hash:other', 'noop:x', 'local:', 'OpenAI:x', 'toString:x'])(
    'memory#2 unknown: %j',
    (model) => {
      expect(isKnownModel(model)).toBe(false)
      expect(() => createEmbedder(model, settings())).toThrow(
        expect.objectContaining({ code: 'invalid_input', details: { field: 'embedding_model' } }),
      )
    },
  )

  test('memory#88 hash:default: 1024 values, unit length', async () => {
    const embedder = createEmbedder('hash:default', settings())
    expect(embedder).toMatchObject({ dimension: 1024, deterministic: true, quality: 'fallback', batchSize: 16 })
    const [vector] = await embedder.embed(['some words'], 'document', never)
    expect(vector).toHaveLength(1024)
    expect(Math.hypot(...(vector ?? []))).toBeCloseTo(1, 6)
  })

  test('noop:default adds byte/255 to slot (index mod 384)', async () => {
    const embedder = createEmbedder('noop:default', settings({ documentPrefix: 'not here' }))
    expect(embedder).toMatchObject({ dimension: 384, deterministic: true, quality: 'placeholder' })
    const [empty, short, long] = await embedder.embed(['', '\u0003\u0004', 'a'.repeat(385)], 'document', never)
    expect(empty).toEqual(new Float32Array(384))
    expect(short?.slice(0, 3)).toEqual(new Float32Array([0.6, 0.8, 0]))
    expect((long?.[0] ?? 0) / (long?.[1] ?? 1)).toBeCloseTo(2, 6)
  })

  test('an aborted signal ends a built-in model too', async () => {
    const reason = new Error('enough')
    await expect(createEmbedder('hash:', settings()).embed(['a'], 'document', AbortSignal.abort(reason))).rejects.toBe(
      reason,
    )
  })
})

describe('local', () => {
  test.each(['local:../other', 'local:a/../../other', 'local:/etc', 'local:..'])(
    'memory#93 %s escapes its root',
    (model) => {
      expect(isKnownModel(model)).toBe(true)
      expect(() => createEmbedder(model, settings({ localDir: '/srv/models' }))).toThrow(
        expect.objectContaining({ code: 'invalid_input', details: { field: 'embedding_model' } }),
      )
    },
  )

  test('a path inside the root, and any path for the server model', () => {
    const server = settings({ localDir: '/srv/models', model: 'local:/opt/model' })
    for (const model of ['local:mini', 'local:a/b', 'local:..mini', 'local:a/../b', 'local:/opt/model']) {
      expect(createEmbedder(model, server).model).toBe(model)
    }
  })

  test('no local_dir: no workspace can name one', () => {
    expect(() => createEmbedder('local:mini', settings())).toThrow(/local_dir is not set/)
  })
})
