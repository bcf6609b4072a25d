// Each step fills a buffer of 40 MB, copies it, blurs the copy, and drops both.
const BYTES = 40 << 20;

function blur(line) {
  let sum = 0;
  for (let i = 2; i < line.length; i++) {
    line[i] = (line[i - 2] + 2 * line[i - 1] + line[i]) >> 2;
    sum += line[i];
  }
  return sum;
}

function step(seed) {
  const frame = Buffer.allocUnsafeSlow(BYTES);
  for (let i = 0; i < BYTES; i += 8) {
    frame[i] = seed * i;
  }
  return blur(Buffer.from(frame));
}

for (let i = 0; i < Number(process.argv[2]); i++) {
  console.log(`step ${i}: ${step(i)}`);
}
