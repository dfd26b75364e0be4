/**
 * Digits without the zeros at their end, counted from there: a pattern that looks for them begins
 * anew at each zero within, and a JSON number of 100 KB takes it 20 s.
 */

export function withoutTrailingZeros(digits: string): string {
  let end = digits.length;
  while (digits.endsWith("0", end)) end -= 1;
  return digits.slice(0, end);
}

/** The same of what is behind the point of a number without exponent, and of a bare point. */
export function withoutFractionZeros(number: string): string {
  if (!number.includes(".")) return number;
  const shorter = withoutTrailingZeros(number);
  return shorter.endsWith(".") ? shorter.slice(0, -1) : shorter;
}
