/**
 * Finds user names that people would confuse. As RFC 8265 requires for account names, two accounts
 * must not differ only in case, width or look-alike letters.
 *
 * The folded form serves only to decide whether a new name may be chosen. Names themselves are
 * compared in Unicode form NFC, case-sensitively.
 *
 *     name ──NFKC──► look-alikes of Latin letters ──lower case──► NFC
 *     Аdа (Cyrillic А and а)  ──────────────────────────────────►  ada
 */

/** Letters from other scripts, each followed by the Latin letter that it resembles. */
const LOOK_ALIKES =
  // Cyrillic letters.
  "АAаaВBЕEеeЅSѕsІIіiЈJјjКKМMНHОOоoРPрpСCсcТTУYуyХXхxҮYүyһhԁdԚQԛqԜWԝwӀl" +
  // Greek letters.
  "ΑAαaΒBΕEΖZΗHΙIιiΚKκkΜMΝNνvΟOοoΡPρpΤTΥYυuΧXχxϲcϹCϳj" +
  // Armenian letters.
  "ՕOօoՍUսuՏSոnցgհhզq" +
  // Latin letters outside the basic alphabet.
  "ıiɑaɡgɩiʟLɪiʏYɴNʀRʜHꞲJ";

const LATIN_OF = new Map<string, string>();
for (let index = 0; index < LOOK_ALIKES.length; index += 2) {
  LATIN_OF.set(LOOK_ALIKES.charAt(index), LOOK_ALIKES.charAt(index + 1));
}

/** Returns a key for a user name. Two names that people would confuse have the same key. */
export function foldedUserName(name: string): string {
  const compatible = name.normalize("NFKC");
  const latin = Array.from(compatible, (letter) => LATIN_OF.get(letter) ?? letter).join("");
  return latin.toLowerCase().normalize("NFC");
}
