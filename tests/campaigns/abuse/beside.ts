/** Runs the victim alongside an attack, in its own process. */
import type { VictimJob, VictimReport } from "./victim.ts";

export interface RunningVictim {
  /** Resolves once the ordinary user has started working. */
  ready(): Promise<void>;
  stop(): Promise<VictimReport>;
}

export function startVictim(job: VictimJob): RunningVictim {
  const script = Bun.fileURLToPath(new URL("./victim.ts", import.meta.url));
  const child = Bun.spawn([process.execPath, script, JSON.stringify(job)], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const reader = child.stdout.getReader();
  return {
    async ready() {
      await reader.read();
    },
    async stop() {
      void child.stdin.write("stop\n");
      void child.stdin.end();
      const decoder = new TextDecoder();
      let text = "";
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        text += decoder.decode(part.value, { stream: true });
      }
      return JSON.parse(text) as VictimReport;
    },
  };
}
