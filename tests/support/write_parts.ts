/**
 * Creates the parts that encode a write, for tests of writes: an encoder of log frames and a
 * memtable column.
 */
import { FrameEncoder } from "../../src/storage/local_wal/frame_encoder.ts";
import { MemColumn } from "../../src/storage/memtable/mem_column.ts";
import type { DataType } from "../../src/types/mod.ts";

export function frameEncoder(options: ConstructorParameters<typeof FrameEncoder>[0]): FrameEncoder {
  return new FrameEncoder(options);
}

export function memColumn(columnId: number, type: DataType): MemColumn {
  return new MemColumn(columnId, type);
}
