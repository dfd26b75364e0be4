/**
 * Which row groups one reader reads of a scan that several divide. A reader that is slow, or began
 * late, takes fewer of them.
 */
import type { ScanShare } from "../../storage/mod.ts";
import type { RunDivision } from "../execute/run/run.ts";
import type { ClaimWords, JobPart, PartClaims } from "./job.ts";

export function newDivision({ claims }: Pick<JobPart, "claims">): RunDivision {
  return { share: shareOf(claims), gathered: [] };
}

function shareOf(claims: PartClaims): ScanShare {
  return claims.kind === "counter" ? new CountedShare(claims) : new ShareInTurn(claims);
}

/**
 * Takes a row group when it comes to one and has none in hand. So the groups up to the one in hand
 * are taken by then, by this reader or by others, and no reader is ever behind what it took.
 */
class CountedShare implements ScanShare {
  readonly #words: ClaimWords;
  readonly #number: number;
  #next = 0;
  #inHand = -1;

  constructor({ number, words }: Extract<PartClaims, { kind: "counter" }>) {
    this.#words = words;
    this.#number = number;
  }

  claimsNext(): boolean {
    const group = this.#next;
    this.#next += 1;
    if (this.#inHand < group && Atomics.load(this.#words, 1 + this.#number) === 0) {
      this.#inHand = Atomics.add(this.#words, 0, 1);
    }
    return this.#inHand === group;
  }
}

class ShareInTurn implements ScanShare {
  readonly #number: number;
  readonly #of: number;
  #next = 0;

  constructor({ number, of }: Extract<PartClaims, { kind: "turn" }>) {
    this.#number = number;
    this.#of = of;
  }

  claimsNext(): boolean {
    const group = this.#next;
    this.#next += 1;
    return group % this.#of === this.#number;
  }
}
