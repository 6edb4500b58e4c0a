/** SHA-256 for the core, in ES5: some hosts have only an asynchronous one, some have none. Source: FIPS 180-4. */

/** Returns the hash as 32 bytes. */
function sha256(bytes) {
  var state = [1779033703, -1150833019, 1013904242, -1521486534, 1359893119, -1694144372, 528734635, 1541459225];
  var padded = padded512(bytes);
  var digest = [];
  var i;
  for (i = 0; i < padded.length; i += 64) addBlock(state, padded, i);
  for (i = 0; i < 32; i++) digest.push((state[i >> 2] >>> (24 - (i % 4) * 8)) & 255);
  return digest;
}

/** Appends a one bit, zeros, and the length in bits. A target has fewer than 2^16 bytes. */
function padded512(bytes) {
  var padded = bytes.concat([128]);
  var bits = bytes.length * 8;
  while (padded.length % 64 !== 56) padded.push(0);
  return padded.concat([0, 0, 0, 0, bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255]);
}

function addBlock(state, bytes, from) {
  var words = wordsOf(bytes, from);
  var s = state.slice();
  var i, one, two;
  for (i = 0; i < 64; i++) {
    one = s[7] + mixed(s[4], 6, 11, 25) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + ROUNDS[i] + words[i];
    two = mixed(s[0], 2, 13, 22) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = [(one + two) | 0, s[0], s[1], s[2], (s[3] + one) | 0, s[4], s[5], s[6]];
  }
  for (i = 0; i < 8; i++) state[i] = (state[i] + s[i]) | 0;
}

function wordsOf(bytes, from) {
  var words = [];
  var i, at, near, far;
  for (i = 0; i < 16; i++) {
    at = from + i * 4;
    words.push((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]);
  }
  for (i = 16; i < 64; i++) {
    near = words[i - 2];
    far = words[i - 15];
    near = turned(near, 17) ^ turned(near, 19) ^ (near >>> 10);
    far = turned(far, 7) ^ turned(far, 18) ^ (far >>> 3);
    words.push((words[i - 16] + far + words[i - 7] + near) | 0);
  }
  return words;
}

function turned(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}

function mixed(word, a, b, c) {
  return turned(word, a) ^ turned(word, b) ^ turned(word, c);
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
var ROUNDS = (
  "428a2f98 71374491 b5c0fbcf e9b5dba5 3956c25b 59f111f1 923f82a4 ab1c5ed5" +
  " d807aa98 12835b01 243185be 550c7dc3 72be5d74 80deb1fe 9bdc06a7 c19bf174" +
  " e49b69c1 efbe4786 0fc19dc6 240ca1cc 2de92c6f 4a7484aa 5cb0a9dc 76f988da" +
  " 983e5152 a831c66d b00327c8 bf597fc7 c6e00bf3 d5a79147 06ca6351 14292967" +
  " 27b70a85 2e1b2138 4d2c6dfc 53380d13 650a7354 766a0abb 81c2c92e 92722c85" +
  " a2bfe8a1 a81a664b c24b8b70 c76c51a3 d192e819 d6990624 f40e3585 106aa070" +
  " 19a4c116 1e376c08 2748774c 34b0bcb5 391c0cb3 4ed8aa4a 5b9cca4f 682e6ff3" +
  " 748f82ee 78a5636f 84c87814 8cc70208 90befffa a4506ceb bef9a3f7 c67178f2"
)
  .split(" ")
  .map(function (hex) {
    return parseInt(hex, 16) | 0;
  });
