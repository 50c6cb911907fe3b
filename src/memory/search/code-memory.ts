import { KERNEL } from './kernel.ts'

const PAGE = 65_536
const MAX_PAGES = 65_536

let compiled: WebAssembly.Module | undefined

/** Memory that the kernel reads, at most 4 GiB; nothing while empty. */
export class CodeMemory {
  readonly #what: string
  #memory: WebAssembly.Memory | undefined
  #exports: WebAssembly.Instance['exports'] = {}

  /** @param what it holds, for the message when it is full */
  constructor(what: string) {
    this.#what = what
  }

  get buffer(): ArrayBuffer | undefined {
    return this.#memory?.buffer
  }

  get byteLength(): number {
    return this.#memory?.buffer.byteLength ?? 0
  }

  /** A function of kernel.wat; undefined while there is no memory. */
  kernel(name: string): ((...values: number[]) => number | undefined) | undefined {
    return this.#exports[name]
  }

  /**
   * Makes room. Growing is in place: it reserves addresses, and copies nothing; but it detaches views of the buffer.
   * @returns whether it grew
   * @throws RangeError when it would exceed 4 GiB
   */
  reserve(bytes: number): boolean {
    const pages = Math.ceil(bytes / PAGE)
    if (pages > MAX_PAGES) throw new RangeError(`${this.#what} exceed 4 GiB: use the pgvector driver`)
    const have = this.byteLength / PAGE
    if (pages <= have) return false
    if (this.#memory) this.#memory.grow(Math.min(MAX_PAGES, Math.max(pages, Math.ceil(have * 1.25))) - have)
    else this.#open(pages)
    return true
  }

  #open(pages: number): void {
    this.#memory = new WebAssembly.Memory({ initial: pages, maximum: MAX_PAGES })
    compiled ??= new WebAssembly.Module(KERNEL)
    this.#exports = new WebAssembly.Instance(compiled, { codes: { memory: this.#memory } }).exports
  }
}
