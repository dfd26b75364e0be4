/**
 * Verifies that systemd accepts `deploy/tidemark.service` and rates it as well protected. The test
 * uses `systemd-analyze`, which reads a unit just as the service manager does.
 */
import { expect } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { programMissing, testUnless } from "../support/requirements.ts";

const PATH = join(import.meta.dir, "../../deploy/tidemark.service");
const PROGRAM = "/usr/local/bin/tidemark";

/** The highest exposure allowed, on a scale from 0 (the service can access nothing) to 10. */
const EXPOSURE_MAX = 1.9;

const systemdMissing = programMissing("systemd-analyze", "systemd");

/**
 * Runs a `systemd-analyze` command on the unit. The unit's program is replaced with a program that
 * exists on this machine.
 */
function analyze(command: readonly string[]): { code: number; output: string; errors: string } {
  const folder = mkdtempSync(join(tmpdir(), "tidemark-unit-"));
  try {
    const path = join(folder, "tidemark.service");
    const unit = readFileSync(PATH, "utf8");
    expect(unit).toContain(`ExecStart=${PROGRAM} `);
    writeFileSync(path, unit.replace(`ExecStart=${PROGRAM} `, `ExecStart=${process.execPath} `));
    const { exitCode, stdout, stderr } = Bun.spawnSync(["systemd-analyze", ...command, path]);
    return { code: exitCode, output: stdout.toString(), errors: stderr.toString() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

testUnless(systemdMissing)("systemd accepts the unit without a warning", () => {
  const { code, errors } = analyze(["verify", "--man=no"]);
  expect([code, errors]).toEqual([0, ""]);
});

testUnless(systemdMissing)("systemd rates the unit as well protected", () => {
  const { output } = analyze(["security", "--offline=true", "--no-pager"]);
  const exposure = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(output)?.[1]);
  expect(exposure).toBeGreaterThan(0);
  expect(exposure).toBeLessThanOrEqual(EXPOSURE_MAX);
});
