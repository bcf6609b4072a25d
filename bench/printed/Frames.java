/* Each step fills a frame of 40 MB outside the heap, copies it into an array, blurs it, and drops both. */
import java.nio.ByteBuffer;

class Frames {
    static final int BYTES = 40 << 20;

    static int blur(byte[] line) {
        int sum = 0;
        for (int i = 2; i < line.length; i++) {
            line[i] = (byte) ((line[i - 2] + 2 * line[i - 1] + line[i]) >> 2);
            sum += line[i];
        }
        return sum;
    }

    static int step(int seed) {
        ByteBuffer frame = ByteBuffer.allocateDirect(BYTES);
        for (int i = 0; i < BYTES; i += 8) {
            frame.putLong(i, (long) seed * i);
        }
        byte[] line = new byte[BYTES];
        frame.get(line);
        return blur(line);
    }

    public static void main(String[] arguments) {
        int steps = Integer.parseInt(arguments[0]);
        for (int i = 0; i < steps; i++) {
            System.out.println("step " + i + ": " + step(i));
        }
    }
}
