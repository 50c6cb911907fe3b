/** The part of WebAssembly that is used here: the compiler's own declarations come only with those of a browser. */
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array)
  }

  class Memory {
    readonly buffer: ArrayBuffer
    /** In pages of 64 KiB. */
    constructor(limits: { initial: number; maximum: number })
    grow(pages: number): number
  }

  class Instance {
    readonly exports: Readonly<Record<string, (...values: number[]) => number | undefined>>
    constructor(module: Module, imports: Record<string, Record<string, Memory>>)
  }
}
