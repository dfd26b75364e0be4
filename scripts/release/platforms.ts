/**
 * Defines the platforms of a release, and the bytes by which an executable identifies its
 * platform.
 *
 *     ELF     0  "\x7fELF"   18  u16 machine: 62 x86-64, 183 ARM64
 *     Mach-O  0  u32 0xfeedfacf   4  u32 processor: 0x0100000c ARM64
 *     PE      0  "MZ"   60  u32 offset of "PE\0\0", then u16 machine: 0x8664 x86-64
 */

export const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-arm64", "windows-x64"] as const;

export type Platform = (typeof PLATFORMS)[number];

const ELF_MAGIC = 0x464c457f;
const MACH_O_MAGIC = 0xfeedfacf;
const DOS_MAGIC = 0x5a4d;
const PE_MAGIC = 0x00004550;

/** Returns the platform of an executable; undefined if it is none of the release platforms. */
export function platformOf(program: Uint8Array): Platform | undefined {
  if (program.length < 64) return undefined;
  const view = new DataView(program.buffer, program.byteOffset, program.byteLength);
  if (view.getUint32(0, true) === ELF_MAGIC) {
    const machine = view.getUint16(18, true);
    return machine === 62 ? "linux-x64" : machine === 183 ? "linux-arm64" : undefined;
  }
  if (view.getUint32(0, true) === MACH_O_MAGIC) {
    return view.getUint32(4, true) === 0x0100000c ? "darwin-arm64" : undefined;
  }
  const header = view.getUint32(60, true);
  if (view.getUint16(0, true) !== DOS_MAGIC || header + 6 > program.length) return undefined;
  const isForX64 = view.getUint16(header + 4, true) === 0x8664;
  return view.getUint32(header, true) === PE_MAGIC && isForX64 ? "windows-x64" : undefined;
}

/** Returns the file name of the executable that `scripts/build.ts` writes for a platform. */
export function programName(platform: Platform): string {
  return `tidemark-${platform}${platform.startsWith("windows") ? ".exe" : ""}`;
}
