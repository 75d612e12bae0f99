// Runs several of Kafka's own tools in one Java, one after another, since a start costs seconds. Run from source: `java JavaTools.java`.
//
// In: a line with the number of arguments, then a line for each: the file that the tool reads as its input, or nothing; the class; and
// what its `main` gets. Out: a line `BYTES STATUS`, then so
// many bytes of what the tool printed. A tool that would end the process ends only itself.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

public class JavaTools {
    static final class Exited extends RuntimeException {
    }

    // Some tools catch what they throw themselves, so the first exit is the one that counts, and ends what the tool has to say.
    static Integer status;
    static final List<Runnable> hooks = new ArrayList<>();

    // Scala's console keeps the stream that it saw first, so the stream stays and what is behind it changes.
    static final class Switch extends OutputStream {
        ByteArrayOutputStream said = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int one) {
            write(new byte[] {(byte) one}, 0, 1);
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) {
            if (status == null) {
                said.write(bytes, from, count);
            }
        }

        synchronized byte[] take() {
            byte[] all = said.toByteArray();
            said = new ByteArrayOutputStream();
            return all;
        }
    }

    public static void main(String[] unused) throws Exception {
        PrintStream answers = System.out;
        Switch said = new Switch();
        PrintStream out = new PrintStream(said, true);
        System.setOut(out);
        System.setErr(out);
        Exit.setExitProcedure((code, message) -> exit(code));
        Exit.setHaltProcedure((code, message) -> exit(code));
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String count = in.readLine(); count != null; count = in.readLine()) {
            List<String> arguments = new ArrayList<>();
            for (int left = Integer.parseInt(count); left > 0; left--) {
                arguments.add(in.readLine());
            }
            status = null;
            String input = arguments.remove(0);
            System.setIn(input.isEmpty() ? InputStream.nullInputStream() : new FileInputStream(input));
            run(arguments.remove(0), arguments.toArray(new String[0]), out);
            out.flush();
            byte[] all = said.take();
            answers.println(all.length + " " + status);
            answers.write(all, 0, all.length);
            answers.flush();
        }
        System.exit(0);
    }

    static void exit(int code) {
        end(code);
        throw new Exited();
    }

    static void end(int code) {
        if (status == null) {
            List<Runnable> last = new ArrayList<>(hooks);
            hooks.clear();
            last.forEach(Runnable::run);
            status = code;
        }
    }

    static void run(String tool, String[] arguments, PrintStream out) throws Exception {
        int code = 0;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace(out);
            code = 1;
        }
        end(code);
    }
}
