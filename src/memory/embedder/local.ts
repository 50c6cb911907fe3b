import { createRequire } from 'node:module'
import { isAbsolute, relative, resolve, sep } from 'node:path'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import { invalidInput } from '../errors.ts'
import { EmbedderError, type Embedder, type EmbedderSettings } from './types.ts'
import { cutToBytes, unitVector } from './vector.ts'

const PACKAGE = '@huggingface/transformers'

/** What is used of the package: `pipeline('feature-extraction', directory, options)` gives a function of texts. */
interface Transformers {
  pipeline(task: string, path: string, options: object): Promise<(texts: string[], options: object) => Promise<unknown>>
}

const isTransformers = (value: unknown): value is Transformers =>
  typeof value === 'object' && value !== null && 'pipeline' in value && typeof value.pipeline === 'function'

const tensor = z.object({ data: z.instanceof(Float32Array), dims: z.tuple([z.int(), z.int()]) })

/**
 * `local:<path>`: an ONNX model in a local directory, run by an optional dependency; nothing is ever downloaded.
 * `importPackage` stands for the loading of it, which is no `import()`: that fails in bundles of bin/quick.js. Contract: memory.md 6.1.
 */
export function local(
  path: string,
  directory: string,
  settings: EmbedderSettings,
  importPackage: (name: string) => Promise<unknown> = async (name) => createRequire(import.meta.url)(name),
): Embedder {
  const maxInputTokens = 8192
  let dimension: number | undefined
  let loading: ReturnType<Transformers['pipeline']> | undefined

  async function load(): ReturnType<Transformers['pipeline']> {
    const loaded = await importPackage(PACKAGE).catch((error: unknown) => {
      throw new EmbedderError(
        `local models need the package ${PACKAGE}: npm install ${PACKAGE} (${codeOf(error)})`,
        false,
      )
    })
    if (!isTransformers(loaded)) throw new EmbedderError(`${PACKAGE} has no pipeline`, false)
    return loaded.pipeline('feature-extraction', directory, { local_files_only: true })
  }

  async function vectors(inputs: string[]): Promise<Float32Array[]> {
    loading ??= load()
    const extract = await loading.catch((error: unknown) => {
      loading = undefined
      throw error
    })
    const { data, dims } = tensor.parse(await extract(inputs, { pooling: 'mean', normalize: true }))
    const [rows, values] = dims
    if (rows !== inputs.length || data.length !== rows * values || !data.every(Number.isFinite)) {
      throw new EmbedderError(`local model gave ${rows} × ${values} values for ${inputs.length} texts`, false)
    }
    dimension = values
    return inputs.map((_, i) => unitVector(data.subarray(i * values, (i + 1) * values)))
  }

  return {
    model: `local:${path}`,
    get dimension() {
      return dimension
    },
    batchSize: settings.batchSize,
    maxInputTokens,
    deterministic: true,
    quality: 'production',
    fusionWeight: 1,
    async embed(texts, purpose, signal) {
      signal.throwIfAborted()
      if (texts.length === 0) return []
      const prefix = purpose === 'query' ? settings.queryPrefix : settings.documentPrefix
      try {
        return await vectors(texts.map((text) => cutToBytes(prefix + text, 4 * maxInputTokens)))
      } catch (error) {
        if (error instanceof EmbedderError) throw error
        throw new EmbedderError(`local model: ${errorText(error).slice(0, 200)}`, false)
      }
    },
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : errorText(error).slice(0, 100)

/**
 * Directory of a model that a workspace names: inside `embedding.local_dir`.
 * @throws MemoryError invalid_input when it is not, or when there is no such directory to be inside of.
 */
export function directoryOf(path: string, localDir: string | undefined): string {
  if (localDir === undefined)
    throw invalidInput('local models are off: embedding.local_dir is not set', 'embedding_model')
  const directory = resolve(localDir, path)
  const inside = relative(resolve(localDir), directory)
  if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) {
    throw invalidInput(`local:${path} is outside embedding.local_dir`, 'embedding_model')
  }
  return directory
}
